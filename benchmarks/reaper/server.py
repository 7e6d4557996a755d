"""The account over HTTP: pages, filters, tokens and EC2's published throttles, so that a client meets what it would meet.

`python -m benchmarks.reaper.server OURS STRANGERS` prints its port, then serves until its standard input ends. Buckets: EC2's user
guide, "Request throttling for the EC2 API": Describe calls with a filter or MaxResults 100 requests, then 20 a second;
DescribeInstances with neither 50, then 10 a second. Step Functions' throttles are not modelled.

The local AWS's model of EC2 is not behind it: to write a page of 1,000 instances takes that model half a second, which is more
than either client takes to read it.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from benchmarks.reaper.account import ACCOUNT, HOUR, MACHINE, Account
from benchmarks.served import caller, serve
from localaws.model import Tokens
from localaws.plain_http import PlainHandler

PAGE = 1000
LEAST_PAGE = 5
"""DescribeInstances takes a MaxResults of 5 to 1,000."""
EC2 = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<{0}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>0</requestId>{1}</{0}Response>'
)
EC2_ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors><RequestID>0</RequestID></Response>"
)
EMPTY = {
    "DescribeVolumes": "volumeSet",
    "DescribeSpotInstanceRequests": "spotInstanceRequestSet",
    "DescribeNetworkInterfaces": "networkInterfaceSet",
}
"""Describe calls that this account answers with nothing."""
NOTHING_STORED: dict[str, dict[str, object]] = {"GetItem": {}, "Query": {"Items": [], "Count": 0, "ScannedCount": 0}}
"""Reads of DynamoDB, and the answers of an empty table."""


class Server(ThreadingHTTPServer):
    """One account; `counts` has the calls by name, and the throttles."""

    daemon_threads = True

    def __init__(self, account: Account) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.account, self.turn = account, threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Full buckets and no counts: each client begins alike."""
        self.counts: Counter[str] = Counter()
        self.describe, self.unpaged = Tokens(rate=20, burst=100), Tokens(rate=10, burst=50)


class Handler(PlainHandler):
    """EC2 and STS (query and XML), Step Functions and DynamoDB (JSON), in an account without grids and with an empty table."""

    server: Server

    def do_GET(self) -> None:
        if self.path == "/counts":
            answer = json.dumps(self.server.counts)
            self.server.reset()
            self._say(200, answer)
        else:
            self._say(404, "")

    def do_POST(self) -> None:
        body = self.body().decode()
        if target := self.headers.get("X-Amz-Target"):
            service, _, name = target.rpartition(".")
            self._count(name)
            if service.startswith("DynamoDB"):
                return self._table(name)
            return self._states(name, json.loads(body))
        if self.path == "/v1/listjobs":
            self._count("ListJobs")
            return self._say(200, json.dumps({"jobSummaryList": []}))
        return self._ec2(dict(parse_qsl(body)))

    def _table(self, name: str) -> None:
        """Answers reads of a table of state in which nothing is: a pass that only reports writes nothing."""
        if name in NOTHING_STORED:
            return self._say(200, json.dumps(NOTHING_STORED[name]))
        return self._say(400, json.dumps({"__type": "UnknownOperationException", "message": name}))

    def _states(self, name: str, asked: dict[str, Any]) -> None:
        if name == "ListTrainingJobs":
            return self._say(200, json.dumps({"TrainingJobSummaries": []}))
        if name == "ListExecutions" and asked["stateMachineArn"] != MACHINE:
            return self._say(200, json.dumps({"executions": []}))
        if name == "ListExecutions":
            page = self.server.account.executions(int(asked.get("nextToken", 0)), asked.get("maxResults", 100))
            return self._say(200, page)
        if name == "DescribeExecution":
            job = int(asked["executionArn"].rpartition("-")[2])
            return self._say(200, json.dumps(self.server.account.shown(job)))
        return self._say(400, json.dumps({"__type": "UnknownOperationException", "message": name}))

    def _ec2(self, asked: dict[str, str]) -> None:
        name = asked["Action"]
        self._count(name)
        if name == "GetCallerIdentity":
            return self._say(200, caller(ACCOUNT))
        filters = _filters(asked)
        bucket = self.server.describe if filters or "MaxResults" in asked else self.server.unpaged
        with self.server.turn:
            taken = bucket.take(time.monotonic())
        if not taken:
            self._count("throttled")
            return self._say(503, EC2_ERROR.format("RequestLimitExceeded", "Request limit exceeded."))
        if name in EMPTY:
            return self._say(200, EC2.format(name, f"<{EMPTY[name]}/>"))
        if name != "DescribeInstances":
            return self._say(400, EC2_ERROR.format("InvalidAction", name))
        size = int(asked.get("MaxResults", PAGE))
        if not LEAST_PAGE <= size <= PAGE:
            return self._say(400, EC2_ERROR.format("InvalidParameterValue", f"MaxResults {size}"))
        found, start = self.server.account.wanted(filters), int(asked.get("NextToken", 0))
        rest = f"<nextToken>{start + size}</nextToken>" if start + size < len(found) else ""
        page = self.server.account.page(found[start : start + size])
        return self._say(200, EC2.format(name, f"<reservationSet>{page}</reservationSet>{rest}"))

    def _count(self, name: str) -> None:
        self.server.counts[name] += 1

    def _say(self, status: int, text: str, **headers: str) -> None:
        self.answer(status, text.encode(), headers)


def _filters(asked: dict[str, str]) -> dict[str, list[str]]:
    """`Filter.1.Name=...&Filter.1.Value.1=...` as name to values."""
    found: dict[str, list[str]] = {}
    for key, name in asked.items():
        if key.startswith("Filter.") and key.endswith(".Name"):
            prefix = key.removesuffix("Name") + "Value."
            found[name] = [value for other, value in asked.items() if other.startswith(prefix)]
    return found


def main() -> None:
    now = int(time.time())
    launched = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now - 2 * HOUR))
    account = Account(ours=int(sys.argv[1]), strangers=int(sys.argv[2]), now=now, launched=launched)
    serve(Server(account), account.late())


if __name__ == "__main__":
    main()
