"""Mutations of files, and the judgement of what the program makes of them."""
import json
import math
import os
import random
import re
import signal
import subprocess
import threading
import time

NUMBERS = ["0", "-1", "1e20", "1e308", "-1e308", "1e-320", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "nan", "inf", "-inf", "0.0", "1e", "0x10", "",
           "65536", "4294967296", "2147483648"]
PIECES = [b"\xff\xfe", b"\x00", b"\xc3\x28", b"\xed\xa0\x80", b"\n", b"\r\n", b"\t", b"\"", b"{", b"}", b"[", b"]", b",", b":", b"#", b"- ", b"null", b"true", b"\\u0000", b"\\ud800",
          b"&a [*a]", b"x" * 3000, b"[" * 2000, b"\xe2\x80\xae"]
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9-]*")


def _spot(data, pattern, choose):
    spots = list(pattern.finditer(data))
    return choose.choice(spots).span() if spots else None


def _other_number(data, choose):
    at = _spot(data, NUMBER, choose)
    return data if at is None else data[:at[0]] + choose.choice(NUMBERS).encode() + data[at[1]:]


def _other_word(data, choose):
    at, other = _spot(data, WORD, choose), _spot(data, WORD, choose)
    if at is None:
        return data
    return data[:at[0]] + choose.choice([data[other[0]:other[1]], data[at[0]:at[1]] + b"x", b"", b"\xff" + data[at[0]:at[1]]]) + data[at[1]:]


def _piece_put_in(data, choose):
    at = choose.randint(0, len(data))
    return data[:at] + choose.choice(PIECES) + data[at:]


def _cut(data, choose):
    return data[:choose.randint(0, len(data))]


def _part_removed(data, choose):
    start = choose.randint(0, len(data))
    return data[:start] + data[start + choose.randint(1, max(1, len(data) // 4)):]


def _part_doubled(data, choose):
    start = choose.randint(0, len(data))
    end = min(len(data), start + choose.randint(1, 200))
    return data[:end] + data[start:end] * choose.choice([1, 1, 2, 50]) + data[end:]


def _line_moved(data, choose):
    lines = data.split(b"\n")
    line = lines.pop(choose.randrange(len(lines)))
    lines.insert(choose.randint(0, len(lines)), line)
    return b"\n".join(lines)


def _bytes_changed(data, choose):
    changed = bytearray(data)
    for _ in range(choose.choice([1, 1, 2, 8])):
        if changed:
            changed[choose.randrange(len(changed))] = choose.choice([0, 1, 0x7f, 0x80, 0xff, choose.randrange(256)])
    return bytes(changed)


def _length_changed(data, choose):
    """Four or eight octets that may be a length become an absurd one."""
    size = choose.choice([1, 2, 4, 8])
    if len(data) < size:
        return data
    at = choose.randrange(len(data) - size + 1)
    return data[:at] + choose.choice([b"\xff" * size, b"\x00" * size, b"\xff" * (size - 1) + b"\x7f", b"\x00" * (size - 1) + b"\x80"]) + data[at + size:]


OF_TEXT = [_other_number, _other_number, _other_number, _other_word, _piece_put_in, _cut, _part_removed, _part_doubled, _line_moved, _bytes_changed]
OF_OCTETS = [_bytes_changed, _bytes_changed, _bytes_changed, _length_changed, _length_changed, _cut, _part_removed, _part_doubled, _piece_put_in]


def mutate(data, choose):
    """One to three mutations; never the file as it was."""
    is_text = b"\x00" not in data[:1000]
    for _ in range(20):
        changed = data
        for _ in range(choose.choice([1, 1, 1, 2, 3])):
            changed = choose.choice(OF_TEXT if is_text else OF_OCTETS)(changed, choose)
        if changed != data:
            return changed
    return data + b"x"


class Run:
    """One run of a program: its status (negative: a signal), its output, its most memory and whether it was too slow."""

    def __init__(self, command, folder, most_s, environment=None):
        started = time.monotonic()
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=environment, start_new_session=True)
            timer = threading.Timer(most_s, lambda: os.killpg(process.pid, signal.SIGKILL))
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - started
        self.was_slow = self.seconds > most_s
        self.status = process.returncode
        self.memory = usage.ru_maxrss * 1024
        self.stdout = (folder / "stdout").read_bytes()
        self.stderr = (folder / "stderr").read_bytes()


def _numbers(value, path=""):
    """Where numbers are in a JSON document; places in lists count as one."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _numbers(one, f"{path}/{key}")
    elif isinstance(value, list):
        for one in value:
            yield from _numbers(one, f"{path}/*")
    elif value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        yield path, value


def numbers_of(stdout):
    """Places of numbers that are never null in what the program prints for a good file."""
    places = {}
    for path, value in _numbers(json.loads(stdout)):
        places[path] = places.get(path, True) and value is not None
    return {path for path, always in places.items() if always}


def fault_of(run, numbers, most_memory=2 << 30):
    """What is wrong with a run, in words; nothing if it is as users may expect."""
    if run.was_slow:
        return f"took more than {run.seconds:.0f} s"
    if run.status not in (0, 1, 2):
        return f"ended with status {run.status}"
    if run.memory > most_memory:
        return f"held {run.memory >> 20} MB"
    try:
        error = run.stderr.decode("utf-8")
        output = run.stdout.decode("utf-8")
    except UnicodeDecodeError:
        return "wrote what is no UTF-8"
    lines = error.splitlines()
    if run.status == 2 and (len(lines) != 1 or not error.startswith("fleetfit: ") or not error.endswith("\n")):
        return f"refused with {len(lines)} lines on stderr"
    if run.status == 1 and not lines:
        return "failed without a line on stderr"
    if any(len(line) > 1000 for line in lines):
        return f"wrote a line of {max(map(len, lines))} characters"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", error):
        return "wrote a control character"
    if run.status == 2 or not output.strip():
        return "" if run.status else "said nothing and ended with status 0"
    return _fault_of_output(output, numbers, run.status)


def _fault_of_output(output, numbers, status):
    def refuse(word):
        raise ValueError(word)

    try:
        document = json.loads(output, parse_constant=refuse)
    except ValueError as error:
        return f"printed no JSON: {error}"
    if status != 0:
        return ""
    if isinstance(document, dict) and document.get("unsupported"):
        numbers = set()  # what is not known of an operator is null, as long as it is said that it is not known
    for path, value in _numbers(document):
        if value is None and path in numbers:
            return f"printed null for the number {path}"
        if value is not None and not math.isfinite(value):
            return f"printed {value} for {path}"
    return ""
