"""ombus.configure() and ombus.spark(): sessions that know the source, in JVMs of their own where one is needed."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import ombus
import pytest
from ombus import spark_session
from pyspark import SparkContext
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
ENVIRONMENT = (
    "PYSPARK_PYTHON",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_REMOTE",
    "PYSPARK_GATEWAY_PORT",
    "MASTER",
)


@pytest.fixture
def no_jvm(monkeypatch):
    """As in a fresh process, though other tests have a session in this one."""
    monkeypatch.setattr(SparkContext, "_jvm", None)
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "")  # so that whatever the test sets is undone
        monkeypatch.delenv(name)


def python(code, **environment):
    """Run a program in a process, and so a JVM, of its own."""
    clean = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**clean, **environment}, check=False
    )


def options(builder):
    return builder._options


def test_the_package_brings_the_jar():
    built = ROOT / "connector" / "target" / ombus.jar_path().name
    assert ombus.jar_path().read_bytes() == built.read_bytes()


def test_a_package_without_the_jar_says_so(monkeypatch):
    monkeypatch.setattr(spark_session, "__version__", "0.0.0")
    with pytest.raises(ombus.SparkNotReady, match=r"without the connector's jar, ombus-spark_2\.13-0\.0\.0\.jar"):
        ombus.jar_path()


def test_configure_appends_the_jar(no_jvm):
    jar = str(ombus.jar_path())
    builder = SparkSession.builder.config("spark.jars", "/a.jar, /b.jar")
    assert ombus.configure(builder) is builder
    assert options(builder)["spark.jars"] == f"/a.jar,/b.jar,{jar}"
    assert options(ombus.configure(builder))["spark.jars"] == f"/a.jar,/b.jar,{jar}"
    assert options(ombus.configure(SparkSession.builder))["spark.jars"] == jar


def test_configure_keeps_the_jars_of_spark_defaults(no_jvm, monkeypatch, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("# jars\nspark.jarsx  /no.jar\nspark.jars\t/site.jar\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert options(ombus.configure(SparkSession.builder))["spark.jars"] == f"/site.jar,{ombus.jar_path()}"


def test_jars_of_the_submit_arguments_do_not_hide_ours(no_jvm, monkeypatch):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars /x.jar --packages a:b:1 pyspark-shell")
    ombus.configure(SparkSession.builder)
    expected = f"--jars /x.jar,{ombus.jar_path()} --packages a:b:1 pyspark-shell"
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == expected


@pytest.mark.parametrize(
    ("master", "before", "after"),
    [
        ("local[2]", None, sys.executable),
        (None, None, sys.executable),
        ("local", "/usr/bin/other", "/usr/bin/other"),
        ("spark://host:7077", None, None),  # that path means nothing there
    ],
)
def test_python_of_the_workers(no_jvm, monkeypatch, master, before, after):
    if before:
        monkeypatch.setenv("PYSPARK_PYTHON", before)
    builder = SparkSession.builder
    ombus.configure(builder.master(master) if master else builder)
    assert os.environ.get("PYSPARK_PYTHON") == after


def test_a_client_of_spark_connect_is_left_alone(no_jvm, monkeypatch):
    monkeypatch.setattr(spark_session, "_running_jvm", lambda: pytest.fail("touched the JVM"))
    builder = SparkSession.builder.remote("sc://host:15002")
    assert options(ombus.configure(builder)) == {"spark.remote": "sc://host:15002"}
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    assert options(ombus.configure(SparkSession.builder)) == {}


def test_a_jvm_with_another_release_is_refused(monkeypatch):
    properties = SimpleNamespace(load=lambda stream: None, getProperty=lambda name: "9.9.9")
    resource = SimpleNamespace(openStream=lambda: SimpleNamespace(close=lambda: None))
    loader = SimpleNamespace(getResource=lambda name: resource)
    thread = SimpleNamespace(currentThread=lambda: SimpleNamespace(getContextClassLoader=lambda: loader))
    java = SimpleNamespace(lang=SimpleNamespace(Thread=thread), util=SimpleNamespace(Properties=lambda: properties))
    monkeypatch.setattr(SparkContext, "_jvm", SimpleNamespace(java=java))
    with pytest.raises(ombus.SparkNotReady, match=r"runs the connector 9\.9\.9, this is ombus"):
        ombus.configure(SparkSession.builder)


def test_a_ready_session():
    result = python(
        """
import sys, ombus
spark = ombus.spark("ready", "local[1]", spark_ui_enabled=False, **{"spark.sql.session.timeZone": "UTC"})
assert (spark.conf.get("spark.ui.enabled"), spark.conf.get("spark.sql.session.timeZone")) == ("false", "UTC")
assert spark.sparkContext.appName == "ready"
assert spark.sparkContext.parallelize([0]).map(lambda _: sys.executable).first() == sys.executable
assert ombus.spark() is spark
spark.stop()
again = ombus.spark("again", "local[1]")  # the same JVM
assert again._jvm.io.ombus.spark.nativebridge.NativeLibrary.instance().version() == ombus.__version__
print("good")
"""
    )
    assert result.stdout == "good\n", result.stderr


def test_a_session_that_runs_without_the_jar():
    result = python(
        """
import ombus
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for attempt in (ombus.spark, lambda: ombus.configure(SparkSession.builder), lambda: ombus.read(spark, "log:///x")):
    try:
        attempt()
        print("no error")
    except ombus.SparkNotReady as error:
        print(error)
spark.stop()
try:
    ombus.spark()
except ombus.SparkNotReady as error:
    print(error)
"""
    )
    lines = result.stdout.splitlines()
    assert len(lines) == 4, result.stderr
    started = "Spark cannot use ombus here (Spark's JVM was started without the connector's jar"
    assert [line.startswith(started) for line in lines] == [True, True, False, True], lines
    assert "spark-submit --jars $(ombus jar)" in lines[0]
    assert "has no connector: make it with ombus.spark()" in lines[2]


@pytest.mark.parametrize("with_jar", [True, False])
def test_spark_submit(tmp_path, with_jar):
    job = tmp_path / "job.py"
    job.write_text('import ombus\nprint("version", ombus.spark().version)\n')
    submit = Path(sys.executable).with_name("spark-submit")
    jars = ["--jars", str(ombus.jar_path())] if with_jar else []
    result = subprocess.run(
        [submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false", *jars, job],
        capture_output=True,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    if with_jar:
        assert "version 4." in result.stdout, result.stderr
    else:
        assert result.returncode != 0
        assert "spark-submit --jars $(ombus jar)" in result.stdout + result.stderr


def test_without_pyspark():
    result = python(
        """
import sys
sys.modules["pyspark"] = None  # as if it were not installed
import ombus
print(ombus.struct_schema([("a", "<i4")]))
try:
    ombus.spark()
except ombus.SparkNotReady as error:
    print(error)
"""
    )
    assert result.stdout.splitlines() == [
        "a int32",
        "Spark cannot use ombus here (pyspark is not installed: pip install pyspark)",
    ], result.stderr


def test_the_command_that_prints_the_jar():
    command = Path(sys.executable).with_name("ombus")
    assert subprocess.run([command, "jar"], capture_output=True, text=True).stdout == f"{ombus.jar_path()}\n"
