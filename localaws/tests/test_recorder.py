"""The recorder names calls in every protocol of AWS, by botocore's own models, and errors by what callers will read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from botocore.awsrequest import HeadersDict
from botocore.parsers import RpcV2CBORParser

from localaws.recorder import Answer, Call, Environ, Recorder, Session, error_code
from localaws.refusing import refused
from localaws.services.throttling import refusal

ROLE = "arn:aws:iam::123456789012:role/node"
JSON = {"CONTENT_TYPE": "application/x-amz-json-1.0"}
FORM = {"CONTENT_TYPE": "application/x-www-form-urlencoded; charset=utf-8"}


class Application:
    """Answers everything alike, and keeps what it was asked."""

    def __init__(self, status: str = "200 OK", body: bytes = b"") -> None:
        self.status, self.body = status, body
        self.asked: list[Environ] = []

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.asked.append({**environ, "body": environ["wsgi.input"].read()})
        start_response(self.status, [])
        return [self.body]


def request(service: str, method: str, path: str, body: bytes = b"", **headers: str) -> Environ:
    path, _, query = path.partition("?")
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "HTTP_HOST": "localhost:1",
        "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential=KEY/20260101/eu-west-1/{service}/aws4_request, Signature=x",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        **headers,
    }


def recorded(environ: Environ, application: Application | None = None) -> Call:
    recorder = Recorder(application or Application())
    recorder.know("KEY", Session(role=ROLE, throttled=True))
    list(recorder(environ, lambda *_: None))
    return recorder.calls[-1]


RUN = b"Action=RunInstances&Version=2016-11-15&MinCount=2"
SEND = {"HTTP_X_AMZ_TARGET": "AWSStepFunctions.SendTaskSuccess", **JSON}
NAMES: list[tuple[str, Environ]] = [
    ("ec2:RunInstances", request("ec2", "POST", "/", RUN, **FORM)),
    ("states:SendTaskSuccess", request("states", "POST", "/", b'{"taskToken": "t"}', **SEND)),
    ("lambda:Invoke", request("lambda", "POST", "/2015-03-31/functions/f/invocations", b"{}")),
    ("lambda:GetFunction", request("lambda", "GET", "/2015-03-31/functions/arn:aws:lambda:eu-west-1:1:function:f")),
    ("s3:ListBuckets", request("s3", "GET", "/")),
    ("s3:CreateBucket", request("s3", "PUT", "/bucket")),
    ("s3:ListObjectsV2", request("s3", "GET", "/bucket?list-type=2&prefix=jobs/")),
    ("s3:ListObjects", request("s3", "GET", "/bucket?prefix=jobs/")),
    ("s3:GetObject", request("s3", "GET", "/bucket/jobs/a/job.json")),
    ("s3:HeadObject", request("s3", "HEAD", "/bucket/jobs/a/job.json")),
    ("s3:PutObject", request("s3", "PUT", "/bucket/jobs/a/job.json", b"{}")),
    ("s3:CopyObject", request("s3", "PUT", "/bucket/b", HTTP_X_AMZ_COPY_SOURCE="bucket/a")),
    ("s3:UploadPart", request("s3", "PUT", "/bucket/key?partNumber=1&uploadId=u", b"x")),
    ("s3:CreateMultipartUpload", request("s3", "POST", "/bucket/key?uploads")),
    ("s3:CompleteMultipartUpload", request("s3", "POST", "/bucket/key?uploadId=u", b"x")),
    ("s3:DeleteObjects", request("s3", "POST", "/bucket?delete", b"x")),
    ("s3:DeleteObject", request("s3", "DELETE", "/bucket/key")),
    ("s3:GetObject", request("s3", "GET", "/jobs/a/job.json", HTTP_HOST="bucket.localhost:1")),
]


@pytest.mark.parametrize(("name", "environ"), NAMES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_call_has_the_name_that_a_policy_would_use(name: str, environ: Environ) -> None:
    call = recorded({**environ, "wsgi.input": io.BytesIO(environ["wsgi.input"].getvalue())})
    assert (call.name, call.role, call.region, call.status) == (name, ROLE, "eu-west-1", 200)


def test_parameters_are_kept_short() -> None:
    call = recorded(request("ec2", "POST", "/", b"Action=RunInstances&UserData=" + b"x" * 5000, **FORM))
    assert 100 < len(call.parameters["UserData"]) < 300
    assert recorded(request("s3", "GET", "/bucket/a/b")).parameters == {"Bucket": "bucket", "Key": "a/b"}


def test_every_key_of_a_deletion_is_kept() -> None:
    keys = [f"jobs/{number}/&amp;{'x' * 400}" for number in range(1000)]
    body = f"<Delete>{''.join(f'<Object><Key>{key}</Key></Object>' for key in keys)}</Delete>"
    told = recorded(request("s3", "POST", "/bucket?delete", body.encode())).parameters["Deleted"]
    assert told == [[key.replace("&amp;", "&")] for key in keys]


def test_a_body_that_was_read_for_its_action_still_reaches_the_service() -> None:
    application = Application()
    recorded(request("ec2", "POST", "/", RUN, **FORM), application)
    assert application.asked[0]["body"] == RUN


def test_a_presigned_request_is_its_signers() -> None:
    query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=KEY%2F20260101%2Feu-west-1%2Fs3%2Faws4_request"
    environ = request("s3", "GET", f"/bucket/key?{query}")
    del environ["HTTP_AUTHORIZATION"]
    assert (recorded(environ).name, recorded(environ).role) == ("s3:GetObject", ROLE)


def test_an_unsigned_request_is_no_call() -> None:
    environ = request("s3", "GET", "/moto-api/data.json")
    del environ["HTTP_AUTHORIZATION"]
    recorder = Recorder(Application())
    list(recorder(environ, lambda *_: None))
    assert recorder.calls == []


def test_a_call_of_unknown_keys_is_nobodys_role() -> None:
    recorder = Recorder(Application())
    list(recorder(request("s3", "GET", "/"), lambda *_: None))
    assert (recorder.calls[0].role, recorder.calls[0].throttled) == ("KEY", False)


ERRORS = [
    (b'{"__type": "com.amazonaws#TaskTimedOut", "message": ""}', {}, "TaskTimedOut"),
    (b"<Error><Code>NoSuchKey</Code></Error>", {}, "NoSuchKey"),
    (b"{}", {"x-amzn-ErrorType": "ResourceNotFoundException:http://x"}, "ResourceNotFoundException"),
    (b"<html>", {}, ""),
    (b"[]", {}, ""),
]


@pytest.mark.parametrize(("body", "headers", "code"), ERRORS, ids=lambda value: str(value)[:30])
def test_an_error_is_named_in_every_protocol(body: bytes, headers: dict[str, str], code: str) -> None:
    assert error_code(body, headers) == code


def test_an_answer_of_a_gap_never_reaches_the_service() -> None:
    application = Application()
    recorder = Recorder(application)
    recorder.interceptors.append(lambda call, _: Answer(503, b"<Code>X</Code>", error=f"No{call.action}"))
    answered: list[Any] = []
    body = recorder(request("ec2", "POST", "/", RUN, **FORM), lambda status, _: answered.append(status))
    assert (list(body), answered, application.asked) == ([b"<Code>X</Code>"], ["503 NoRunInstances"], [])
    assert recorder.calls[0].error == "NoRunInstances"


def test_a_refusal_in_json_names_its_error_twice() -> None:
    call = recorded(request("states", "POST", "/", b"{}", **SEND))
    answer = refusal(call)
    assert answer is not None
    assert (json.loads(answer.body)["__type"], answer.headers["x-amzn-ErrorType"]) == ("ThrottlingException",) * 2


def test_a_protocol_that_nobody_knows_is_not_refused() -> None:
    call = recorded(request("monitoring", "POST", "/service/X/operation/PutMetricData", HTTP_SMITHY_PROTOCOL="x"))
    assert refusal(replace(call, protocol="carrier pigeon")) is None


def test_a_refusal_in_cbor_is_read_by_boto3_as_its_error() -> None:
    call = recorded(request("monitoring", "POST", "/service/X/operation/PutMetricData", HTTP_SMITHY_PROTOCOL="x"))
    answer = refused(call, "AccessDeniedException", "not \N{EM DASH} you", 403)
    assert answer is not None
    parser: Any = RpcV2CBORParser()
    told = parser.parse({"status_code": 403, "headers": HeadersDict(answer.headers), "body": answer.body}, None)
    assert told["Error"] == {"Code": "AccessDeniedException", "Message": "not \N{EM DASH} you"}


def test_headers_that_change_what_a_call_may_take_are_kept() -> None:
    copy = request(
        "s3", "PUT", "/bucket/key", HTTP_X_AMZ_COPY_SOURCE="other/a%20b?versionId=7", HTTP_X_AMZ_TAGGING="a=b"
    )
    assert recorded(copy).parameters == {
        "Bucket": "bucket",
        "Key": "key",
        "CopySource": "other/a b?versionId=7",
        "Tagging": "a=b",
    }
    replacing = request("s3", "PUT", "/bucket/key", b"{}", HTTP_IF_MATCH='"etag"')
    assert recorded(replacing).parameters["If-Match"] == '"etag"'
