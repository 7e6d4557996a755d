"""Nobody who lacks the account's secrets makes a call: other users of the computer reach its port, and know everything but these."""

from __future__ import annotations

import base64
import hashlib
import http.client
import io
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from localaws.account import DEPLOYER, Credentials, LocalAccount
from localaws.authentication import Authentication
from localaws.conditions import Conditions
from localaws.moto_keys import Secret
from localaws.recorder import Recorder, Session
from localaws.server import LocalAws
from localaws.signatures import Environ, read_signature
from localaws.testing.calm import CALM
from localaws.testing.waiting import HANG_S

REGION, BUCKET = "us-east-1", "files"
ONCE = Config(retries={"total_max_attempts": 1})
V4, V2 = (Config(retries={"total_max_attempts": 1}, signature_version=version) for version in ("s3v4", "s3"))
INVENTED = Credentials("ASIAINVENTED00000000", "s" * 40, "t")
SERVICES: dict[str, tuple[str, str, str]] = {
    "s3": ("list_buckets", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    "ec2": ("describe_instances", "AuthFailure", "AuthFailure"),
    "sts": ("get_caller_identity", "InvalidClientTokenId", "SignatureDoesNotMatch"),
    "iam": ("list_roles", "InvalidClientTokenId", "SignatureDoesNotMatch"),
    "sns": ("list_topics", "InvalidClientTokenId", "SignatureDoesNotMatch"),
    "sqs": ("list_queues", "UnrecognizedClientException", "InvalidSignatureException"),
    "cloudformation": ("list_stacks", "InvalidClientTokenId", "SignatureDoesNotMatch"),
    "cloudwatch": ("list_metrics", "UnrecognizedClientException", "InvalidSignatureException"),
    "dynamodb": ("list_tables", "UnrecognizedClientException", "InvalidSignatureException"),
    "logs": ("describe_log_groups", "UnrecognizedClientException", "InvalidSignatureException"),
    "stepfunctions": ("list_state_machines", "UnrecognizedClientException", "InvalidSignatureException"),
    "events": ("list_rules", "UnrecognizedClientException", "InvalidSignatureException"),
    "secretsmanager": ("list_secrets", "UnrecognizedClientException", "InvalidSignatureException"),
    "ssm": ("describe_parameters", "UnrecognizedClientException", "InvalidSignatureException"),
    "kms": ("list_keys", "UnrecognizedClientException", "InvalidSignatureException"),
    "ecr": ("describe_repositories", "UnrecognizedClientException", "InvalidSignatureException"),
    "codebuild": ("list_projects", "UnrecognizedClientException", "InvalidSignatureException"),
    "sagemaker": ("list_training_jobs", "UnrecognizedClientException", "InvalidSignatureException"),
    "lambda": ("list_functions", "UnrecognizedClientException", "InvalidSignatureException"),
    "batch": ("describe_job_queues", "UnrecognizedClientException", "InvalidSignatureException"),
    "scheduler": ("list_schedules", "UnrecognizedClientException", "InvalidSignatureException"),
}
"""By service: a call, and what AWS says to unknown keys and to a wrong signature."""


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(CALM, gaps=("ec2", "ssm", "ecr", "codebuild", "sagemaker", "batch", "cloudformation")) as made:
        made.client("s3").create_bucket(Bucket=BUCKET)
        made.client("s3").put_object(Bucket=BUCKET, Key="k", Body=b"content")
        yield made


def using(aws: LocalAws, keys: Credentials, service: str, config: Config = ONCE) -> Any:
    session: Any = boto3.session.Session(keys.access_key, keys.secret, keys.token or None, REGION)
    return session.client(service, endpoint_url=aws.endpoint, config=config)


def own(aws: LocalAws) -> Credentials:
    return aws.credentials_for(DEPLOYER)


def refusal(call: Any, **given: Any) -> str:
    with pytest.raises(ClientError) as problem:
        call(**given)
    return str(problem.value.response["Error"]["Code"])


def fetch(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, named, method=method), timeout=HANG_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read()


# Who may not


@pytest.mark.parametrize("service", SERVICES)
def test_keys_that_nobody_handed_out_are_refused_in_the_services_words(aws: LocalAws, service: str) -> None:
    call, unknown, _ = SERVICES[service]
    assert refusal(getattr(using(aws, INVENTED, service), call)) == unknown


@pytest.mark.parametrize("service", SERVICES)
def test_a_known_key_with_another_secret_is_refused_in_the_services_words(aws: LocalAws, service: str) -> None:
    call, _, wrong = SERVICES[service]
    keys = Credentials(own(aws).access_key, "x" * 40, own(aws).token)
    assert refusal(getattr(using(aws, keys, service), call)) == wrong


@pytest.mark.parametrize("service", SERVICES)
def test_keys_of_the_account_are_taken(aws: LocalAws, service: str) -> None:
    getattr(using(aws, own(aws), service), SERVICES[service][0])()


@pytest.mark.parametrize(("service", "code"), [("s3", "InvalidToken"), ("sts", "InvalidClientTokenId")])
@pytest.mark.parametrize("token", ["", "session-of-another"])
def test_a_key_without_its_token_is_refused(aws: LocalAws, service: str, code: str, token: str) -> None:
    keys = Credentials(own(aws).access_key, own(aws).secret, token)
    assert refusal(getattr(using(aws, keys, service), SERVICES[service][0])) == code


def test_keys_of_one_session_do_not_open_another(aws: LocalAws) -> None:
    one, other = (aws.credentials_for("arn:aws:iam::123456789012:role/node", session=name) for name in ("i-1", "i-2"))
    assert one != other
    mixed = Credentials(one.access_key, other.secret, one.token)
    assert refusal(using(aws, mixed, "s3").list_buckets) == "SignatureDoesNotMatch"


def test_a_function_that_a_stranger_brings_is_not_made(aws: LocalAws) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("index.py", "def handler(event, context): ...")
    functions = using(aws, INVENTED, "lambda")
    given = {"Role": "arn:aws:iam::123456789012:role/x", "Runtime": "python3.13", "Handler": "index.handler"}
    code = {"ZipFile": archive.getvalue()}
    assert refusal(functions.create_function, FunctionName="f", Code=code, **given) == "UnrecognizedClientException"
    assert refusal(functions.invoke, FunctionName="f") == "UnrecognizedClientException"
    assert aws.client("lambda").list_functions()["Functions"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/moto-api/",
        "/moto-api/data.json",
        f"/{BUCKET}/k",
        f"/{BUCKET}/k?X-Amz-Credential=",
        "/?X-Amz-Credential=A/B/C/s3/aws4_request",
        f"/{BUCKET}/k?AWSAccessKeyId=A&Signature=B&Expires=9999999999",
        "/2015-03-31/functions",
        "/?Action=ListRoles&Version=2010-05-08",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_what_is_not_signed_is_refused(aws: LocalAws, path: str, method: str) -> None:
    assert fetch(aws.endpoint + path, method, b"" if method in ("POST", "PUT") else None)[0] == 403
    assert aws.client("s3").get_object(Bucket=BUCKET, Key="k")["Body"].read() == b"content"


@pytest.mark.parametrize(
    "text", ["Basic eDp5", "Bearer x", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=a/b/c, Signature=0", ""]
)
def test_what_is_signed_otherwise_is_refused(aws: LocalAws, text: str) -> None:
    assert fetch(f"{aws.endpoint}/{BUCKET}/k", Authorization=text)[0] == 403


def test_a_stranger_resets_nothing(aws: LocalAws) -> None:
    assert fetch(f"{aws.endpoint}/moto-api/reset", "POST", b"")[0] == 403
    assert aws.client("s3").list_buckets()["Buckets"]


def test_what_was_refused_is_no_call(aws: LocalAws) -> None:
    before = len(aws.recorder.calls)
    refusal(using(aws, INVENTED, "s3").list_buckets)
    fetch(f"{aws.endpoint}/{BUCKET}/k")
    assert len(aws.recorder.calls) == before


def test_no_key_can_be_computed_by_whoever_knows_the_account() -> None:
    made = [LocalAccount(Conditions(), Recorder(lambda *_: [])).credentials_for(DEPLOYER) for _ in range(2)]
    assert len({part for keys in made for part in (keys.access_key, keys.secret, keys.token)}) == 6


# What was signed


def presigned(aws: LocalAws, call: str = "get_object", config: Config = V4, lasts_s: int = 60, **more: Any) -> str:
    params = {"Bucket": BUCKET, "Key": "k", **more}
    url: str = using(aws, own(aws), "s3", config).generate_presigned_url(call, Params=params, ExpiresIn=lasts_s)
    return url


def test_a_presigned_address_reads_and_writes_what_it_names(aws: LocalAws) -> None:
    assert fetch(presigned(aws)) == (200, b"content")
    assert fetch(presigned(aws, "put_object", Key="odd/ä +%2F~&="), "PUT", b"new", Content_Type="")[0] == 200
    assert aws.client("s3").get_object(Bucket=BUCKET, Key="odd/ä +%2F~&=")["Body"].read() == b"new"


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("/k?", "/other?"),
        ("X-Amz-Expires=60", "X-Amz-Expires=99999"),
        ("us-east-1", "us-west-2"),
        ("Signature=", "Signature=0"),
    ],
)
def test_a_presigned_address_opens_nothing_else(aws: LocalAws, part: str, other: str) -> None:
    url = presigned(aws)
    assert part in url
    status, said = fetch(url.replace(part, other, 1))
    assert (status, b"<Code>SignatureDoesNotMatch</Code>" in said) == (403, True)


def test_a_presigned_address_is_for_one_method(aws: LocalAws) -> None:
    assert fetch(presigned(aws), "PUT", b"new")[0] == 403
    assert fetch(presigned(aws), "DELETE")[0] == 403


def test_a_presigned_address_expires(aws: LocalAws) -> None:
    url = presigned(aws, lasts_s=1)
    time.sleep(2.1)
    status, said = fetch(url)
    assert (status, b"Request has expired" in said) == (403, True)


def test_an_address_that_is_presigned_with_version_2_is_refused_as_new_buckets_do(aws: LocalAws) -> None:
    assert fetch(presigned(aws, config=V2))[0] == 403


def raw(aws: LocalAws, change: Any) -> tuple[int, bytes]:
    """Sends a signed PutItem after `change` to its headers and body."""
    sent: list[Any] = []
    client = using(aws, own(aws), "dynamodb")
    client.meta.events.register("before-send", lambda request, **_: sent.append(request))
    with pytest.raises(ClientError):
        client.get_item(TableName="t", Key={"a": {"S": "b"}})
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in sent[0].headers.items()}
    headers, body = change(headers, sent[0].body)
    link = http.client.HTTPConnection("localhost", urlsplit(aws.endpoint).port or 0)
    link.request("POST", "/", body, headers)
    answer = link.getresponse()
    return answer.status, answer.read()


def test_a_body_that_is_not_the_signed_one_is_refused(aws: LocalAws) -> None:
    status, said = raw(aws, lambda headers, body: (headers, body.replace(b'"b"', b'"c"')))
    assert (status, json.loads(said)["__type"]) == (400, "InvalidSignatureException")


def test_a_header_that_is_not_the_signed_one_is_refused(aws: LocalAws) -> None:
    status, said = raw(aws, lambda headers, body: ({**headers, "X-Amz-Target": "DynamoDB_20120810.DeleteTable"}, body))
    assert (status, json.loads(said)["__type"]) == (400, "InvalidSignatureException")


def test_an_object_that_is_not_the_signed_one_is_refused(aws: LocalAws) -> None:
    digest = hashlib.sha256(b"mine").hexdigest()
    client = using(aws, own(aws), "s3", V4)
    client.meta.events.register(
        "before-sign.s3.PutObject", lambda request, **_: request.headers.add_header("X-Amz-Content-SHA256", digest)
    )
    sent: list[Any] = []
    client.meta.events.register("before-send.s3.PutObject", lambda request, **_: sent.append(request))
    client.put_object(Bucket=BUCKET, Key="body", Body=b"mine")
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in sent[0].headers.items()}
    link = http.client.HTTPConnection("localhost", urlsplit(aws.endpoint).port or 0)
    link.request("PUT", f"/{BUCKET}/body", b"that", {**headers, "Content-Length": "4"})
    assert link.getresponse().status in (400, 403)
    assert aws.client("s3").get_object(Bucket=BUCKET, Key="body")["Body"].read() == b"mine"


@pytest.mark.parametrize(
    "key", ["plain", "with space", "ä/ö", "a+b", "a%2Fb", "a//b", "a~b", "a=b&c", "a?b", "a#b", "日本", "a'(b)*!"]
)
def test_an_object_of_any_name_is_written_listed_and_read(aws: LocalAws, key: str) -> None:
    s3 = aws.client("s3")
    s3.put_object(Bucket=BUCKET, Key=f"names/{key}", Body=key.encode(), Metadata={"a": "b  c"}, Tagging="k=v&w=1")
    assert s3.get_object(Bucket=BUCKET, Key=f"names/{key}")["Body"].read() == key.encode()
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix=f"names/{key}")["KeyCount"] >= 1


def test_a_path_with_an_arn_is_taken(aws: LocalAws) -> None:
    functions = aws.client("lambda", config=ONCE)
    arn = "arn:aws:lambda:us-east-1:123456789012:function:none"
    assert refusal(functions.get_function, FunctionName=arn) == "ResourceNotFoundException"


# Keys that the account hands out


def test_keys_of_a_user_are_taken_until_they_are_deleted(aws: LocalAws) -> None:
    iam = aws.client("iam")
    iam.create_user(UserName="someone")
    made = iam.create_access_key(UserName="someone")["AccessKey"]
    keys = Credentials(made["AccessKeyId"], made["SecretAccessKey"], "")
    using(aws, keys, "s3").list_buckets()
    iam.delete_access_key(UserName="someone", AccessKeyId=made["AccessKeyId"])
    assert refusal(using(aws, keys, "s3").list_buckets) == "InvalidAccessKeyId"


def test_keys_of_a_session_that_a_person_begins_are_taken(aws: LocalAws) -> None:
    iam = aws.client("iam")
    role = iam.create_role(RoleName="any", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    made = aws.client("sts").assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
    keys = Credentials(made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])
    using(aws, keys, "s3").list_buckets()
    assert refusal(using(aws, Credentials(keys.access_key, keys.secret, "x"), "s3").list_buckets) == "InvalidToken"


def test_the_password_of_a_registry_holds_a_secret(aws: LocalAws) -> None:
    data = aws.client("ecr").get_authorization_token()["authorizationData"][0]
    password = base64.b64decode(data["authorizationToken"]).decode().removeprefix("AWS:")
    keys = Credentials(password[:20], password[20:60], password[60:])
    using(aws, keys, "ecr").describe_repositories()
    assert aws.recorder.secret_of(keys.access_key) == Secret(keys.secret, keys.token)


# Whose call it is


def test_whoever_signs_makes_the_call_whatever_else_the_request_says(aws: LocalAws) -> None:
    """With a known key that is not his, in every place where a reader might look for whose call it is."""
    mine = aws.credentials_for("arn:aws:iam::123456789012:role/mine")
    others = f"{own(aws).access_key}/20260101/us-east-1/s3/aws4_request"
    client = using(aws, mine, "s3", V4)
    url = client.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "k"}, ExpiresIn=60)
    tries = [
        fetch(url, Authorization=f"AWS4-HMAC-SHA256 Credential={others}, SignedHeaders=host, Signature=00"),
        fetch(url, Authorization=others),
        fetch(f"{url}&X-Amz-Credential={others.replace('/', '%2F')}"),
        fetch(url, X_Amz_Credential=others),
    ]
    assert [status for status, _ in tries] == [403, 403, 403, 200]
    assert aws.recorder.calls[-1].role == "arn:aws:iam::123456789012:role/mine"


@pytest.mark.parametrize("date", ["2026", "", "x", "20260101\n"])
def test_a_scope_without_a_date_is_none(date: str) -> None:
    other = "OTHER/20260101/us-east-1/s3/aws4_request"
    said = f"AWS4-HMAC-SHA256 Credential=KEY/{date}/{REGION}/s3/aws4_request, SignedHeaders=host;{other}, Signature=00"
    assert judge(environ(HTTP_AUTHORIZATION=said)) == "AccessDenied"


def test_no_body_is_read_for_whoever_has_no_key(aws: LocalAws) -> None:
    link = socket.create_connection(("localhost", urlsplit(aws.endpoint).port or 0))
    said = "AWS4-HMAC-SHA256 Credential=KEY/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00"
    lines = ("POST / HTTP/1.1", "Host: x", "X-Amz-Target: DynamoDB_20120810.GetItem", f"Authorization: {said}")
    head = "\r\n".join((*lines, f"Content-Length: {1 << 40}", "", ""))
    with link:
        link.settimeout(30)
        link.sendall(head.encode() + bytes(2 * 1024 * 1024))
        assert b"UnrecognizedClientException" in link.recv(65536)


# Without a server


def environ(**changes: str) -> Environ:
    """A request for which botocore computed the signature, with its time."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as Signers

    request = AWSRequest("GET", "http://localhost:1/b/k?list-type=2&prefix=a%20b", headers={"Host": "localhost:1"})
    S3SigV4Auth(Signers("KEY", "SECRET", "TOKEN"), "s3", REGION).add_auth(request)
    sent = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()}
    target = {"REQUEST_METHOD": "GET", "RAW_URI": "/b/k?list-type=2&prefix=a%20b", "PATH_INFO": "/b/k"}
    return {**sent, **target, "QUERY_STRING": "list-type=2&prefix=a%20b", "wsgi.input": io.BytesIO(), **changes}


def judge(given: Environ) -> str:
    recorder = Recorder(lambda *_: [])
    recorder.know("KEY", Session(role="r"), Secret("SECRET", "TOKEN"))
    answer = Authentication(recorder.secret_of)(read_signature(given), given)
    return "" if answer is None else answer.error


def test_what_botocore_signs_is_taken() -> None:
    assert judge(environ()) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REQUEST_METHOD", "DELETE"),
        ("RAW_URI", "/b/other?list-type=2&prefix=a%20b"),
        ("RAW_URI", "/b/k?list-type=2&prefix=a%20c"),
        ("RAW_URI", "/b/k?list-type=2&prefix=a%20b&acl="),
        ("HTTP_HOST", "elsewhere:1"),
        ("HTTP_X_AMZ_DATE", "20200101T000000Z"),
    ],
)
def test_whatever_else_was_signed_is_refused(name: str, value: str) -> None:
    assert judge(environ(**{name: value})) == "SignatureDoesNotMatch"


def test_a_key_without_a_secret_signs_nothing() -> None:
    recorder = Recorder(lambda *_: [])
    recorder.know("KEY", Session(role="r"))
    given = environ()
    answer = Authentication(recorder.secret_of)(read_signature(given), given)
    assert answer is not None
    assert answer.error == "InvalidAccessKeyId"


def test_another_users_process_that_knows_this_project_makes_no_call(aws: LocalAws) -> None:
    """With everything but the seal: the keys of an account that was made anew by the same code."""
    code = (
        "import sys\nfrom localaws.account import DEPLOYER, LocalAccount\nfrom localaws.conditions import Conditions\n"
        "from localaws.recorder import Recorder\naccount = LocalAccount(Conditions(), Recorder(lambda *_: []))\n"
        "account.endpoint = sys.argv[1]\naccount.client('lambda').list_functions()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, aws.endpoint],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "UnrecognizedClientException" in done.stderr
