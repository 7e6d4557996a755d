"""A certificate for 127.0.0.1 and for names that a test gives to it, with the authority that signed it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def certificate(folder: Path, names: Sequence[str] = ("localhost",)) -> tuple[Path, Path]:
    """Makes both, for hosts of these names: the authority's certificate, which clients trust, and the server's chain with its key."""
    now, days = datetime.now(timezone.utc), timedelta(days=2)
    of_authority, of_server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority, server = _name("an authority of tests"), _name("127.0.0.1")

    def issued(subject: x509.Name, key: ec.EllipticCurvePublicKey, *, signs: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder(authority, subject, key, x509.random_serial_number(), now - days, now + days)
            .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(of_authority.public_key()), critical=False
            )
        )

    usage = x509.KeyUsage(False, False, False, False, False, True, False, False, False)
    root = issued(authority, of_authority.public_key(), signs=True).add_extension(usage, critical=True)
    local = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *(x509.DNSName(name) for name in names)]
    )
    leaf = issued(server, of_server.public_key(), signs=False).add_extension(local, critical=False)
    folder.mkdir(parents=True, exist_ok=True)
    trusted, chain = folder / "authority.pem", folder / "server.pem"
    trusted.write_bytes(root.sign(of_authority, hashes.SHA256()).public_bytes(Encoding.PEM))
    secret = of_server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain.write_bytes(leaf.sign(of_authority, hashes.SHA256()).public_bytes(Encoding.PEM) + secret)
    return trusted, chain


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
