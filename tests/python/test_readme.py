"""The code in the READMEs does what they say."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def blocks(file):
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


def test_a_ring(uri):
    code = blocks("python/README.md")[0]
    result = run("-c", code.replace("shm://engine-0", uri))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "Record(seq=1, type=1, payload=b'hello')\n"


def test_spark(tmp_path):
    result = run("-c", blocks("python/README.md")[1].replace("/var/ombus/", f"{tmp_path}/"))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[3:5] == ["|      1|       1|  hello|", "|      2|       1|  world|"]


def test_the_first_screen(tmp_path):
    engine = run(ROOT / "examples/engine.py", f"log://{tmp_path}/engine-0", "--records", "1000", "--rate", "1000000")
    assert engine.returncode == 0, engine.stderr
    (code,) = [block for block in blocks("README.md") if "readStream" in block]
    local = code.replace('"volumes"', '"volumes", "local[1]", spark_sql_shuffle_partitions=1')
    result = run("-c", local.replace("/var/ombus/", f"{tmp_path}/") + "query.processAllAvailable()\n")
    assert result.returncode == 0, result.stderr
    totals = json.loads(engine.stdout.splitlines()[1])["products"]
    for product, expected in totals.items():
        assert re.search(rf"\| +{product}\| +{expected['matches']}\| +{expected['volume']}\|", result.stdout)
