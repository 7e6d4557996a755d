"""`open` begins the tunnel to a workbench and opens its page; of the node's log it takes the token alone."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import sys
import urllib.request
import webbrowser
from pathlib import Path

import pytest

from contract import names
from contract.workbench import DOCUMENT, address
from localaws.testing.waiting import lives, until
from tests.command_line.account import LAUNCH, PLAN, YARD, Account, History, run
from tests.fakes.executions import GRID_MACHINE
from tests.fakes.faults import Kind
from trainyard import opening

TOKEN, OTHER = "ab" * 32, "cd" * 32
STREAM = names.log_stream("bench", 1, 0)
TUNNEL = f"""#!/bin/sh
''''exec "{sys.executable}" "$0" "$@" # '''
import http.server, json, sys
from pathlib import Path

Path(__file__).with_name("asked").write_text(json.dumps(sys.argv[1:]))
if (failing := Path(__file__).with_name("fails")).exists():
    print(failing.read_text(), file=sys.stderr)
    sys.exit(254)
port = int(sys.argv[sys.argv.index("--parameters") + 1].rpartition("=")[2])


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if "token" in self.path else 403)
        self.end_headers()
        if self.path == "/quit":
            sys.exit(0)

    def log_message(self, *_):
        pass


print("Starting session with SessionId: ada-0abc", flush=True)
server = http.server.HTTPServer(("127.0.0.1", port), Server)
while True:
    server.handle_request()
"""
"""In the place of `aws`: a server at the local port, in place of the bench behind the tunnel. A shell starts it, because `#!` takes no
path with a space."""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A computer with AWS's command line and the plugin of Session Manager."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in (("aws", TUNNEL), ("session-manager-plugin", "#!/bin/sh\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the browser was asked to open; whoever looks at it then closes the tunnel."""
    found = list[str]()

    def note(page: str) -> bool:
        found.append(page)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with pytest.raises(OSError, match=r"403|[Cc]onnection|Remote end"):
            direct.open(page.partition("/lab")[0] + "/quit").close()
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    return found


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        number: int = made.getsockname()[1]
    return number


@pytest.fixture
def bench(there: Account) -> Account:
    """A bench that runs, and whose node has said how it is opened."""
    there.begin("bench", history=launched())
    there.write_line(STREAM, f"trainyard: then open {address(TOKEN)}")
    return there


def launched() -> History:
    bench = {**PLAN, "workbench": {"open": "trainyard open bench"}}
    return History().enter("Admit").leave("Admit", bench).enter("Launch").leave("Launch", LAUNCH).enter("Train")


def read_words(programs: Path) -> list[str]:
    """What `aws` got."""
    found: list[str] = json.loads((programs / "asked").read_text())
    return found


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


# What is opened


@pytest.mark.usefixtures("bench")
def test_it_opens_the_tunnel_and_then_the_page(programs: Path, opened: list[str], port: int) -> None:
    ran = run("open", "bench", "--port", port, *YARD)
    assert (ran.code, opened) == (0, [f"http://127.0.0.1:{port}/lab?token={TOKEN}"])
    words = read_words(programs)
    assert words[:2] == ["ssm", "start-session"]
    assert (option(words, "--region"), option(words, "--target")) == (LAUNCH["region"], "i-0")
    assert option(words, "--document-name") == DOCUMENT
    assert option(words, "--parameters") == f"portNumber=8888,localPortNumber={port}"
    assert ran.out.endswith("bench: the tunnel is closed\n")


@pytest.mark.usefixtures("bench")
def test_the_profile_is_that_of_the_command(
    programs: Path, opened: list[str], port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    file.write_text("[profile lab]\nregion = eu-central-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    assert run("open", "bench", "--port", port, "--profile", "lab", *YARD).code == 0
    assert option(read_words(programs), "--profile") == "lab"
    assert len(opened) == 1


@pytest.mark.usefixtures("bench")
def test_print_only_prints_what_to_paste(programs: Path, opened: list[str]) -> None:
    ran = run("open", "bench", "--print", *YARD)
    command, page = ran.out.splitlines()
    assert shlex.split(command)[:3] == ["aws", "ssm", "start-session"]
    assert (ran.code, page) == (0, f"http://127.0.0.1:8888/lab?token={TOKEN}")
    assert (opened, (programs / "asked").exists()) == ([], False)


@pytest.mark.usefixtures("bench", "programs")
def test_json_has_the_command_and_the_address(opened: list[str]) -> None:
    (document,) = run("open", "bench", "--print", "--json", *YARD).documents
    assert document["address"] == f"http://127.0.0.1:8888/lab?token={TOKEN}"
    assert document["command"][0] == "aws"
    assert opened == []


@pytest.mark.usefixtures("bench")
def test_print_needs_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nothing-here")
    assert run("open", "bench", "--print", *YARD).code == 0


# What code on the node writes into its log


def test_the_newest_attempt_has_the_token(bench: Account) -> None:
    execution = bench.histories[next(iter(bench.histories))]
    execution.end_attempt("NodeLost", "gone").enter("Pause").launch()
    bench.write_line(names.log_stream("bench", 2, 0), f"trainyard: then open {address(OTHER)}")
    assert OTHER in run("open", "bench", "--print", *YARD).out


def test_a_line_that_a_program_prints_later_is_not_it(bench: Account) -> None:
    bench.write_line(STREAM, f"trainyard: then open {address(OTHER)}")
    bench.write_line(STREAM, "trainyard: open the tunnel with: aws ssm start-session --target i-evil --region mars-1")
    out = run("open", "bench", "--print", *YARD).out
    assert TOKEN in out
    assert not any(one in out for one in (OTHER, "i-evil", "mars-1"))


@pytest.mark.parametrize(
    "line",
    [
        f"trainyard: then open http://evil.example/lab?token={TOKEN}",
        f"trainyard: then open https://127.0.0.1:8888/lab?token={TOKEN}",
        "trainyard: then open http://127.0.0.1:8888/lab?token=" + "a" * 63,
        "trainyard: then open http://127.0.0.1:8888/lab?token=" + "a" * 65,
        "trainyard: then open http://127.0.0.1:8888/lab?token=$(reboot)",
        "http://127.0.0.1:8888/lab?token=...",
    ],
)
def test_what_has_not_the_form_of_a_token_is_none(there: Account, line: str) -> None:
    there.begin("bench", history=launched())
    there.write_line(STREAM, line)
    ran = run("open", "bench", "--print", *YARD)
    assert (ran.code, ran.out) == (2, "")
    assert "has not said yet how it is opened" in ran.err


# What cannot be opened


@pytest.mark.parametrize("program", ["aws", "session-manager-plugin"])
@pytest.mark.usefixtures("bench")
def test_a_program_that_is_missing_is_named_with_where_to_get_it(
    programs: Path, opened: list[str], program: str
) -> None:
    (programs / program).unlink()
    ran = run("open", "bench", *YARD)
    assert (ran.code, ran.err.count("\n"), opened) == (2, 1, [])
    assert ran.err.startswith(f"{program}: is not installed here; allowed: install it (https://docs.aws.amazon.com/")


@pytest.mark.usefixtures("bench", "programs")
def test_a_port_that_is_taken_is_named(opened: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        ran = run("open", "bench", "--port", number, *YARD)
    assert (ran.code, opened) == (2, [])
    assert f"--port: {number} of this computer is taken" in ran.err


@pytest.mark.usefixtures("bench")
def test_a_tunnel_that_aws_denies_opens_no_page(programs: Path, opened: list[str], port: int) -> None:
    (programs / "fails").write_text("An error occurred (AccessDeniedException)")
    ran = run("open", "bench", "--port", port, *YARD)
    assert (ran.code, opened) == (1, [])
    assert "the tunnel ended with code 254" in ran.err


def test_a_machine_that_another_version_launched_is_said_to_be_so(there: Account) -> None:
    history = History().enter("Admit").leave("Admit", {**PLAN, "workbench": {}}).enter("Launch")
    there.begin("bench", history=history.leave("Launch", {"instances": ["i-0"]}).enter("Train"))
    there.write_line(STREAM, f"trainyard: then open {address(TOKEN)}")
    ran = run("open", "bench", "--print", *YARD)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "where its machine i-0 runs is not known: another version launched it" in ran.err


@pytest.mark.usefixtures("bench", "programs")
def test_an_interrupt_closes_the_tunnel_and_says_how_to_open_it_again(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: str) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", interrupt)
    ran = run("open", "bench", "--port", port, *YARD)
    assert ran.code == 130
    assert ran.out.splitlines()[-1] == (
        "bench goes on; to open it again: trainyard open bench; to stop it: trainyard stop bench"
    )
    socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.usefixtures("bench")
def test_a_tunnel_that_does_not_want_to_end_is_ended(
    programs: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: str) -> bool:
        raise KeyboardInterrupt

    stubborn = TUNNEL.replace(
        "import http.server", "import signal\nsignal.signal(15, signal.SIG_IGN)\nimport http.server"
    )
    (programs / "aws").write_text(stubborn)
    monkeypatch.setattr(webbrowser, "open", interrupt)
    monkeypatch.setattr(opening, "END_S", 0.1)
    assert run("open", "bench", "--port", port, *YARD).code == 130
    socket.create_server(("127.0.0.1", port)).close()


PLUGIN = """
import signal, subprocess
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
plugin = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.pause()"])
Path(__file__).with_name("plugin").write_text(str(plugin.pid))
"""
"""What `aws` begins for the tunnel, and leaves behind when it is ended itself."""


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_however_the_command_is_ended_the_plugin_of_the_tunnel_ends_too(
    programs: Path, port: int, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    def send(_: str) -> bool:
        signal.raise_signal(end)
        return True

    (programs / "aws").write_text(TUNNEL.replace('print("Starting', f'import os{PLUGIN}print("Starting'))
    monkeypatch.setattr(webbrowser, "open", send)
    # As a terminal starts it: what was started in the background or by nohup ignores some of them, and so does what it starts.
    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {one: signal.signal(one, handler) for one, handler in usual.items()}
    try:
        assert run("open", "bench", "--port", port, *YARD).code == 130
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    plugin = int((programs / "plugin").read_text())
    until(lambda: not lives(plugin))


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize("place", ["http://192.0.2.1/", "http://[", "http://127.0.0.1:1/"])
def test_a_page_that_leads_elsewhere_is_there_and_is_not_followed(
    programs: Path, opened: list[str], port: int, place: str
) -> None:
    leads = TUNNEL.replace(
        "        self.end_headers()", f"        self.send_header('Location', {place!r})\n        self.end_headers()"
    )
    (programs / "aws").write_text(leads.replace("200 if", "302 if"))
    assert run("open", "bench", "--port", port, *YARD).code == 0
    assert len(opened) == 1


@pytest.mark.usefixtures("bench")
def test_a_browser_that_fails_leaves_the_tunnel_open(
    programs: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (programs / "aws").write_text(TUNNEL.replace("while True:\n    server", "server"))  # ends after one page
    monkeypatch.setattr(webbrowser, "open", lambda _: (_ for _ in ()).throw(webbrowser.Error("no browser")))
    ran = run("open", "bench", "--port", port, *YARD)
    assert (ran.code, ran.err) == (0, "")
    assert "no browser was found: open the address yourself" in ran.out


@pytest.mark.parametrize("fault", [Kind.THROTTLED, Kind.UNREACHABLE])
def test_a_bench_that_cannot_be_asked_for_is_one_line(
    bench: Account, fault: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.endpoint.time", bench.clock)
    bench.faults.add(fault, "logs:FilterLogEvents", times=99)
    ran = run("open", "bench", "--print", *YARD)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_job_that_is_no_workbench_is_said_to_be_none(there: Account) -> None:
    there.begin("bench", history=History().admit().launch())
    ran = run("open", "bench", "--print", *YARD)
    assert ran.code == 2
    assert "bench is no workbench; allowed: a job whose request has `workbench`" in ran.err


def test_a_job_that_has_ended_and_is_no_workbench_is_not_gone_on_with(there: Account) -> None:
    there.end(there.begin("bench", history=History().admit().launch()))
    there.end(there.begin("refused"), "FAILED", error="InvalidRequest")
    for name in ("bench", "refused"):
        ran = run("open", name, "--print", *YARD)
        assert (ran.code, f"{name} is no workbench" in ran.err) == (2, True)
        assert "resume_from" not in ran.err


def test_a_bench_that_was_refused_has_nothing_to_resume(there: Account) -> None:
    refused = there.begin("bench")
    refused.input = json.dumps({"workbench": {"idle_minutes": 60}})
    there.end(refused, "FAILED", error="InvalidRequest")
    err = run("open", "bench", "--print", *YARD).err
    assert err == "NAME: bench has ended: FAILED; allowed: a workbench that runs.\n"


def test_a_bench_that_has_ended_says_how_to_go_on(there: Account) -> None:
    there.end(there.begin("bench", history=launched()))
    ran = run("open", "bench", "--print", *YARD)
    assert ran.code == 2
    assert "bench has ended: SUCCEEDED" in ran.err
    assert "resume_from: bench" in ran.err


@pytest.mark.parametrize(
    "history",
    [History(), History().enter("Admit"), launched().end_attempt("NodeLost", "gone")],
    ids=["nothing yet", "Admit", "between two machines"],
)
def test_a_bench_without_a_machine_says_so(there: Account, history: History) -> None:
    there.begin("bench", history=history)
    there.write_line(STREAM, f"trainyard: then open {address(TOKEN)}")
    ran = run("open", "bench", "--print", *YARD)
    assert (ran.code, ran.out) == (2, "")
    assert "it has no machine now" in ran.err


def test_a_grid_of_that_name_is_no_bench(there: Account) -> None:
    there.begin("bench", GRID_MACHINE)
    assert "has no job called bench" in run("open", "bench", "--print", *YARD).err
