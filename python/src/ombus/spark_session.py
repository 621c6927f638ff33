"""Spark sessions that know the format "ombus": the connector's jar is inside this package, so no network is needed.

Importing this module needs no pyspark; calling its functions does.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import SparkNotReady
from .library import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = "spark.jars"
#: In the jar; holds the version of the connector.
BUILD_PROPERTIES = "ombus/build.properties"
SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"


def jar_path() -> Path:
    """The Spark connector's jar that this package brings along, for `spark-submit --jars`.

    >>> jar_path().name  # doctest: +ELLIPSIS
    'ombus-spark_2.13-...jar'
    """
    jar = Path(__file__).parent / "jars" / f"ombus-spark_2.13-{__version__}.jar"
    if not jar.is_file():
        raise SparkNotReady(f"this ombus package was built without the connector's jar, {jar.name}: run `make venv`")
    return jar


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Make the session that `builder` creates able to read ombus streams; returns `builder`.

    >>> from pyspark.sql import SparkSession
    >>> spark = configure(SparkSession.builder.appName("volumes")).getOrCreate()  # doctest: +SKIP

    Adds the connector's jar to those in ``spark.jars`` and, for a local master, lets Python workers run this very
    Python unless PYSPARK_PYTHON says otherwise. A builder for Spark Connect is left as it is: its server needs the jar.
    Raises :class:`~ombus.SparkNotReady` when Spark's JVM runs already without the jar, because one that is added
    later is not found.
    """
    options: dict[str, Any] = builder._options
    if _connects_to_a_server(options):
        return builder
    jvm = _running_jvm()
    if jvm is not None:
        _check_jar_in(jvm)
        return builder
    jar = str(jar_path())
    builder.config(JARS, _with_jar(options.get(JARS) or _jars_from_defaults(), jar))
    _add_jar_to_submit_args(jar)
    if _is_local(options):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return builder


def spark(app_name: str = "ombus", master: str | None = None, **conf: object) -> SparkSession:
    """A Spark session that can read ombus streams: the running one, or a new one.

    >>> session = spark(master="local[2]", spark_ui_enabled=False)  # doctest: +SKIP

    Each further keyword is a setting, with underscores for dots where its name needs no others; any name can be
    given as ``**{"spark.sql.session.timeZone": "UTC"}``.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "pyspark":
            raise SparkNotReady("pyspark is not installed: pip install pyspark") from None
        raise
    builder: SparkSession.Builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder.master(master)
    for name, value in conf.items():
        builder.config(name.replace("_", ".") if name.startswith("spark_") else name, _setting(value))
    return configure(builder).getOrCreate()


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _connects_to_a_server(options: dict[str, Any]) -> bool:
    """Whether the session will be a client of Spark Connect. `local` is a server that this process starts itself."""
    if "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        return True
    remote = options.get("spark.remote") or os.environ.get("SPARK_REMOTE")
    return bool(remote) and not str(remote).startswith("local")


def _running_jvm() -> Any:
    """The JVM that this process drives already, or None."""
    from pyspark import SparkContext

    if SparkContext._jvm is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()  # started by spark-submit: this only connects to it
    return SparkContext._jvm


def _check_jar_in(jvm: Any) -> None:
    """Refuse a JVM that has no connector, or one of another release."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    resource = loader.getResource(BUILD_PROPERTIES)
    if resource is None:
        raise SparkNotReady(
            "Spark's JVM was started without the connector's jar, and a running one cannot get it: "
            "call ombus.spark() or ombus.configure() before the first session is made, "
            "or start it with `spark-submit --jars $(ombus jar)`"
        )
    properties = jvm.java.util.Properties()
    stream = resource.openStream()
    try:
        properties.load(stream)
    finally:
        stream.close()
    found = properties.getProperty("version")
    if found != __version__:
        raise SparkNotReady(
            f"Spark runs the connector {found}, this is ombus {__version__}: install the same release of both"
        )


def _with_jar(jars: str, jar: str) -> str:
    """`jar` appended to a comma-separated list, unless it is there."""
    present = [one.strip() for one in jars.split(",") if one.strip()]
    return ",".join(present if jar in present else [*present, jar])


def _jars_from_defaults() -> str:
    """spark.jars of spark-defaults.conf, which a setting of ours would hide."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder is None and "SPARK_HOME" in os.environ:
        folder = os.path.join(os.environ["SPARK_HOME"], "conf")
    file = Path(folder or ".") / "spark-defaults.conf"
    if folder is None or not file.is_file():
        return ""
    for line in file.read_text(encoding="utf-8").splitlines():
        name, _, value = line.strip().replace("=", " ", 1).replace("\t", " ").partition(" ")
        if name == JARS:
            return value.strip()
    return ""


def _add_jar_to_submit_args(jar: str) -> None:
    """`--jars` in PYSPARK_SUBMIT_ARGS would win over spark.jars: put ours there too."""
    words = shlex.split(os.environ.get(SUBMIT_ARGS, ""))
    for place, word in enumerate(words):
        if word == "--jars" and place + 1 < len(words):
            words[place + 1] = _with_jar(words[place + 1], jar)
            os.environ[SUBMIT_ARGS] = shlex.join(words)
            return


def _is_local(options: dict[str, Any]) -> bool:
    master = options.get("spark.master") or os.environ.get("MASTER") or "local"
    return str(master).startswith("local")
