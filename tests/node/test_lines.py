"""What of a program's output becomes lines of the log: every sentence, and of a progress bar a state now and then."""

from __future__ import annotations

import itertools
import random

import pytest

from agent.lines import BAR_EVERY_S, MOST_BARS, Lines
from agent.logs import LINE_BYTES


def shown(*chunks: bytes, every_s: float = 0.0) -> list[str]:
    """What is shown of chunks that come `every_s` seconds apart."""
    lines = Lines()
    return [line for n, chunk in enumerate(chunks) for line in lines.feed(chunk, n * every_s)] + lines.end()


def tqdm(done: int, of: int = 1000, words: str = "", more: str = "") -> bytes:
    """A state of a bar, as tqdm draws it."""
    share = done / of
    drawn = "█" * int(share * 10) + ("▏▎▍▌▋▊▉"[done % 7] if share < 1 else "")
    return (
        f"\r{words}{share:4.0%}|{drawn:<10}| {done}/{of} [00:{done // 60:02}<00:05, {done / 7:.2f}it/s{more}]".encode()
    )


SENTENCE = "[rank1] step 3 loss 0.1"
KERAS_2 = [b"%d/100 [==>...] - ETA: %ds - loss: 0.%d" % (n, 100 - n, n) for n in range(1, 101)]
BARS: dict[str, list[bytes]] = {
    "tqdm": [tqdm(n) for n in range(1001)],
    "tqdm with words": [tqdm(n, words="Epoch 3: ", more=f", loss={1 / (n + 1):.3g}, v_num=7") for n in range(1001)],
    "tqdm in ASCII": [f"\r{n}%|{'#' * (n // 10)}{n % 10}   | {n}/99 [00:01<00:02, 3it/s]".encode() for n in range(99)],
    "tqdm without a total": [f"\r{n}it [00:04, {n}it/s]".encode() for n in range(500)],
    "tqdm, slowly": [f"\r{n}%|#  | {n}/99 [1:02:{n:02}<3:00:01, {n}.5s/it]".encode() for n in range(60)],
    "bytes": [f"\rmodel.safetensors: {n}%|#  | {n}.1M/{n}G [00:01<00:02, {n}MB/s]".encode() for n in range(1, 99)],
    "keras 2": [b"\b" * 40 + b"\r" + one for one in KERAS_2],
    "keras 3": [
        f"\r\x1b[1m{n}/60\x1b[0m \x1b[32m{'━' * n}\x1b[0m 3s {n}ms/step - loss: 0.{n}".encode() for n in range(60)
    ],
    "print(end='\\r')": [f"step {n} loss {n / 7}\r".encode() for n in range(500)],
    "erased before": [f"\r\x1b[2Kstep {n} of 500".encode() for n in range(500)],
    "backspaces": [b"Loading %02d%%" % n + b"\b" * 11 for n in range(100)],
    "pip": [f"\r     {'━' * n}╸ {n}.1/60.0 MB {n}.2 MB/s eta 0:00:0{n % 10}".encode() for n in range(60)],
}


# Nothing is lost


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r\r\n"])
def test_whole_lines_arrive_as_they_are(end: bytes) -> None:
    assert shown(b"a" + end + b"  b" + end + end + b"c") == ["a", "  b", "", "c"]


@pytest.mark.parametrize("bar", [tqdm(45), b"\r 45%", b"\r45", b"\b\b\b45", b"\r\x1b[K"])
def test_a_sentence_that_a_bar_is_drawn_over_arrives(bar: bytes) -> None:
    assert SENTENCE in shown(SENTENCE.encode() + bar + b"\n")


def test_a_sentence_arrives_each_time_that_a_bar_is_drawn_over_it() -> None:
    chunks = [b"".join((b"step %d loss 0.%d" % (n, n), tqdm(n, words="train: "), b"\n")) for n in range(200)]
    found = shown(*chunks)
    assert [line for line in found if line.startswith("step")] == [f"step {n} loss 0.{n}" for n in range(200)]


def test_a_sentence_behind_a_bar_arrives_each_time_that_the_next_state_is_drawn_over_both() -> None:
    found = shown(*(tqdm(n, more=", loss=0.1") + b"step %d loss" % n for n in range(200)))
    assert [line.rpartition("]")[2] for line in found] == [f"step {n} loss" for n in range(200)]


def test_a_sentence_behind_a_bar_that_is_no_tqdms_arrives_too() -> None:
    found = shown(
        *(b"\rLoading %d%%" % n for n in range(20)), *(b"\rLoading %d%% val loss 0.%d" % (n, n) for n in range(9))
    )
    assert [line for line in found if "val" in line] == [f"Loading {n}% val loss 0.{n}" for n in range(9)]


def test_a_sentence_where_a_bar_was_wiped_out_arrives_each_time() -> None:
    wiped = b"\r" + b" " * 60
    found = shown(*(tqdm(n) + wiped + b"\r" * (n % 2) + b"step %d loss" % n + tqdm(n) for n in range(50)))
    assert [line.strip() for line in found if "step" in line] == [f"step {n} loss" for n in range(50)]


def test_sentences_that_are_drawn_over_a_bar_and_that_a_bar_is_drawn_over_arrive_each_time() -> None:
    """One process wipes its bar out to write; before it writes, another has drawn its own."""
    found = shown(*(tqdm(n) + b"\r" + f"[rank0] step {n}".encode() + tqdm(n) for n in range(50)))
    assert [line for line in found if "rank0" in line] == [f"[rank0] step {n}" for n in range(50)]


def test_sentences_with_a_bar_wiped_out_between_them_arrive_each_time() -> None:
    wiped = b"\r" + b" " * 60 + b"\r"
    found = shown(*(f"[rank{n % 4}] step {n}".encode() + wiped for n in range(50)))
    assert found == [f"[rank{n % 4}] step {n}" for n in range(50)]


def test_lines_that_begin_with_a_carriage_return_are_no_bar() -> None:
    assert shown(*(b"\rEpoch %d done\n" % n for n in range(50))) == [f"Epoch {n} done" for n in range(50)]


def test_times_in_brackets_make_no_bar() -> None:
    lines = [f"[12:30:{n}] saved [12:30:{n}]" for n in range(10, 50)]
    found = shown(*(line.encode() + tqdm(n) + b"\n" for n, line in enumerate(lines)))
    assert [line for line in found if "saved" in line] == lines


@pytest.mark.parametrize("seed", range(8))
def test_of_processes_that_share_a_pipe_no_sentence_is_lost_and_bars_are_not_shown_each_time(seed: int) -> None:
    """As under torchrun with PYTHONUNBUFFERED: a sentence and the end of its line are two writes, between which others write."""
    chance = random.Random(seed)
    sentences = [[f"<rank {rank} step {n} loss {n / 7:.4f}>" for n in range(150)] for rank in range(6)]
    queues: list[list[bytes]] = [[part for one in rank for part in (one.encode(), b"\n")] for rank in sentences]
    queues += [[tqdm(n, words=words, more=f", loss={n}") for n in range(300)] for words in ("", "val: ")]
    raw = b""
    while queues:
        queue = chance.choice(queues)
        raw += queue.pop(0)
        queues = [one for one in queues if one]
    size = chance.choice([1, 7, 100, 65536])
    found = shown(*(raw[at : at + size] for at in range(0, len(raw), size)))
    text = "\n".join(found)
    assert [one for rank in sentences for one in rank if one not in text] == []
    # Each end of a line is one, each sentence may be one of its own, and so may the first states of each bar.
    assert len(found) <= 2 * 6 * 150 + 10


# Bars


@pytest.mark.parametrize("states", BARS.values(), ids=BARS.keys())
def test_a_bar_alone_is_shown_at_once_and_does_not_repeat_itself(states: list[bytes]) -> None:
    found = shown(*states)
    assert 1 <= len(found) <= 4


@pytest.mark.parametrize("states", BARS.values(), ids=BARS.keys())
def test_a_bar_alone_is_shown_now_and_then(states: list[bytes]) -> None:
    found = shown(*states, every_s=1.0)
    assert len(states) / BAR_EVERY_S - 1 <= len(found) <= len(states) / BAR_EVERY_S + 4


def test_the_last_state_of_a_bar_is_shown_when_its_line_ends() -> None:
    assert shown(*(tqdm(n) for n in range(1001)), b"\nnext\n")[-2:] == [tqdm(1000)[1:].decode(), "next"]


def test_the_last_state_of_a_bar_is_shown_when_the_output_ends() -> None:
    assert shown(*(b"step %d\r" % n for n in range(50)))[-1] == "step 49"


def test_bars_of_several_ranks_are_shown_one_by_one() -> None:
    found = shown(*(tqdm(n, words=words) for n in range(200) for words in ("train: ", "val: ", "test on cpu: ")))
    assert [line.partition(":")[0] for line in found] == ["train", "val", "test on cpu", "test on cpu"]


def test_a_bar_that_is_wiped_out_before_each_state_does_not_repeat_itself() -> None:
    assert len(shown(*(b"\r" + b" " * 60 + tqdm(n) for n in range(200)))) == 2


def test_a_known_bar_does_not_repeat_itself_where_others_write_lines_between_its_states() -> None:
    states = [b"step %d of 500\r" % n for n in range(200)]
    found = shown(*states[:3], *(state + b"another's line\n" for state in states[3:]))
    assert [line for line in found if "another" not in line] == ["step 0 of 500"]


def nested(outer: int, inner: int) -> bytes:
    """Two bars of tqdm: of the inner one each state begins with an end of line and ends with the cursor's way back."""
    inside = b"".join(b"\n" + tqdm(n, of=inner, words="inner: ") + b"\x1b[A" for n in range(inner))
    outside = [tqdm(n, of=outer, words="outer: ") for n in range(outer + 1)]
    return inside.join(outside) + b"\n"


def test_nested_bars_are_no_line_each_time() -> None:
    found = shown(nested(20, 50))
    assert [line.partition(":")[0] for line in found] == ["outer", "inner", "outer", "outer"]
    assert "20/20" in found[-1]


def test_bars_that_stop_after_nested_ones_show_where() -> None:
    assert shown(nested(2, 3), *(tqdm(n) + b"\n" for n in (450, 460)))[-2:] == [
        tqdm(n)[1:].decode() for n in (450, 460)
    ]


def test_sentences_between_nested_bars_arrive() -> None:
    between = [b"step %d\n" % n for n in range(50)]
    found = shown(*(nested(2, 3) + line for line in between))
    assert [line for line in found if line.startswith("step")] == [f"step {n}" for n in range(50)]


@pytest.mark.parametrize("mark", [b"|\b/\b-\b\\\b", b"\r|\r/\r-\r\\", "\r⠋\r⠙\r⠹".encode()])
def test_a_spinner_is_not_shown(mark: bytes) -> None:
    assert shown(b"Loading " + mark * 50 + b"\n") in (["Loading "], ["Loading \\"], ["Loading", "\\"], ["Loading", "⠹"])


# Bytes


def test_bytes_that_are_no_text_become_text() -> None:
    assert shown(b"\xff\xfe ok\n") == ["\ufffd\ufffd ok"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
def test_chunks_may_end_anywhere(size: int) -> None:
    raw = "größer 世界\r\n".encode() + tqdm(1) + b"\x1b[1A\n" + tqdm(2) + b"\x1b[A\b\b\b\rx\r\r\nend"
    assert shown(*(raw[at : at + size] for at in range(0, len(raw), size))) == shown(raw)
    assert shown(raw)[0] == "größer 世界"


def test_a_line_without_end_is_cut_into_pieces_of_which_nothing_is_lost() -> None:
    raw = b"x" + "世ü".encode() * 100_000
    found = shown(*(raw[at : at + 65_536] for at in range(0, len(raw), 65_536)))
    assert "".join(found) == raw.decode()
    assert all(len(line.encode()) <= LINE_BYTES for line in found)


@pytest.mark.parametrize(
    "flood", [b"\r", b"\n\r", b"\b", b"\x1b[", b"\x1b[9", b"\x1b[999A", b"|", b"x\r", b"0%|]", b"\xf0"]
)
def test_memory_is_bounded_whatever_comes(flood: bytes) -> None:
    lines = Lines()
    for n in range(40):
        lines.feed(flood * (65_536 // len(flood)), float(n))
    assert sum(len(line.encode()) for line in lines.end()) <= 3 * LINE_BYTES


def test_many_bars_are_forgotten() -> None:
    words = ["".join(letters) for letters in itertools.product("abcde", repeat=4)]
    found = shown(*(tqdm(n, words=word) for word in [*words, *words] for n in range(3)))
    assert len(words) > MOST_BARS
    assert len(found) == 2 * len(words) + 1
