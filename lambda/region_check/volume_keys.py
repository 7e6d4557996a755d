"""Decides whether disks of nodes can be encrypted under a key of the settings: takes KMS's facts, returns every reason against it."""

from __future__ import annotations

from aws.key_facts import VolumeKey

ENCRYPTS, SYMMETRIC = "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT"
"""The use and the make of every key that EBS takes."""
USABLE = ("Enabled", "Updating")
"""States in which a key encrypts. One that is updating becomes the primary of its replicas, or ceases to be it."""
MENDS = {
    "Disabled": "enable it",
    "PendingDeletion": "cancel its deletion and enable it",
    "PendingReplicaDeletion": "cancel its deletion and enable it",
    "PendingImport": "import its key material",
    "Unavailable": "connect its key store",
    "Creating": "deploy again once KMS has made it",
}
"""What makes a key encrypt again, by its state."""
SETTINGS = "regions[].volume_key in cdk.json, docs/guides/landing-zones.md"


def region_of(key: str) -> str:
    """Returns the region that a key's ARN names."""
    return key.split(":")[3]


def refuse_key(key: str, found: VolumeKey | None) -> list[str]:
    """Returns a line for what is known to be wrong with a key (an ARN). One that is not shown to this account is not refused."""
    region = region_of(key)
    allowed = f"allowed: an enabled symmetric key of {region} that encrypts and decrypts ({SETTINGS})"
    if found is None:
        return [
            f"{region}: there is no key {key}; correct its ARN, or replicate a multi-region key to {region}; {allowed}"
        ]
    if found.hidden:
        return []
    if (found.usage, found.spec) != (ENCRYPTS, SYMMETRIC):
        return [f"{region}: {key} is a key of {found.spec} for {found.usage}, which encrypts no disk; {allowed}"]
    if found.state in MENDS:
        return [f"{region}: {key} is {found.state}; {MENDS[found.state]}, or name another; {allowed}"]
    return []


def list_doubts(key: str, found: VolumeKey | None, spot_role: str) -> list[str]:
    """Returns a line for each thing that is not known of a key that is not refused, for the log. `spot_role` is the ARN of the role with
    which AWS launches spot instances here."""
    if found is None or refuse_key(key, found):
        return []
    region = region_of(key)
    if found.hidden:
        return [f"{region}: KMS does not show {key} ({found.hidden}), so whether launches may use it was not checked"]
    doubts = []
    if found.state not in USABLE:
        doubts.append(f"{region}: {key} is {found.state}; whether it encrypts then is not known")
    if found.spot is None:
        doubts.append(f"{region}: the grants of {key} are not shown, so whether spot nodes may use it was not checked")
    elif not found.spot:
        doubts.append(
            f"{region}: no grant lets {spot_role} use {key}, so spot nodes end as they start unless the key's policy names that role "
            "(docs/guides/landing-zones.md)"
        )
    return doubts


def explain_silence(key: str, why: str) -> str:
    """Words that a key could not be looked at; a deploy waits until it can be."""
    return f"{region_of(key)}: {key} could not be checked: {why}. Deploy again once the region answers ({SETTINGS})"
