package io.ombus.spark

import java.time.{DateTimeException, Instant, OffsetDateTime}
import java.util.Locale

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Values of options as their types; a bad one is refused with its name, its value and what would be good. */
private[spark] final class OptionValues(options: CaseInsensitiveStringMap) {

  def get(spec: OptionSpec): Option[String] = Option(options.get(spec.name)).map(_.trim).filter(_.nonEmpty)

  /** Runs a parser; whatever it complains of is told with the option's name and value. */
  def wrap[T](spec: OptionSpec)(parse: String => T)(value: String): T =
    try parse(value)
    catch {
      case e @ (_: IllegalArgumentException | _: DateTimeException | _: ArithmeticException) =>
        throw OmbusErrors.badOption(spec.name, value, e.getMessage)
    }

  def positive(spec: OptionSpec): Option[Long] = get(spec).map { text =>
    val value = text.toLongOption.getOrElse(throw OmbusErrors.badOption(spec.name, text, "it is not a whole number"))
    if (value <= 0) throw OmbusErrors.badOption(spec.name, text, "it must be greater than 0")
    value
  }

  def bytes(spec: OptionSpec): Option[Long] = get(spec).map { text =>
    val value = wrap(spec)(OptionValues.withUnit(_, OptionValues.byteUnits))(text)
    if (value <= 0) throw OmbusErrors.badOption(spec.name, text, "it must be greater than 0")
    value
  }

  def durationMs(spec: OptionSpec): Option[Long] = get(spec).map { text =>
    val value = wrap(spec)(OptionValues.withUnit(_, OptionValues.msUnits))(text)
    if (value < 0) throw OmbusErrors.badOption(spec.name, text, "it must not be negative")
    value
  }

  def boolean(spec: OptionSpec, default: Boolean): Boolean =
    get(spec).fold(default)(text =>
      text.toBooleanOption.getOrElse(throw OmbusErrors.badOption(spec.name, text, "use true or false"))
    )

  /** One of these words, in whatever case; as it is spelt in the list. */
  def oneOf(spec: OptionSpec, words: Seq[String]): Option[String] = get(spec).map { text =>
    words
      .find(_.equalsIgnoreCase(text))
      .getOrElse(throw OmbusErrors.badOption(spec.name, text, s"use ${words.mkString(", ")}"))
  }

  def refuse(spec: OptionSpec, goodFor: String, notFor: String): Unit =
    get(spec).foreach(text => throw OmbusErrors.badOption(spec.name, text, s"it is for $goodFor, not for $notFor"))

  /** The streams, from `load(a)`, `load(a, b)` or the option `uri`. */
  def uris: String = {
    val fromPaths = get(OmbusOptions.Paths).toSeq.flatMap { json =>
      try Json.strings(json)
      catch { case _: JsonProcessingException => Seq(json) }
    }
    val named = (get(OmbusOptions.Uri).toSeq ++ get(OmbusOptions.Path) ++ fromPaths).distinct
    if (named.isEmpty) throw OmbusErrors.noUri()
    // A table of the session catalog has a `path` that Spark made up; its own `uri` decides.
    get(OmbusOptions.Uri).getOrElse(named.mkString(","))
  }
}

private[spark] object OptionValues {

  private val byteUnits = Map("" -> 1L, "b" -> 1L, "k" -> 1024L, "m" -> 1048576L, "g" -> 1073741824L).flatMap {
    case (unit, factor) => Seq(unit -> factor) ++ (if (factor > 1) Seq(s"${unit}b" -> factor) else Nil)
  }
  private val msUnits =
    Map("" -> 1L, "ms" -> 1L, "s" -> 1000L, "m" -> 60000L, "min" -> 60000L, "h" -> 3600000L, "d" -> 86400000L)

  private val number = "([0-9]{1,18})\\s*([a-z]*)".r

  private[spark] def withUnit(text: String, units: Map[String, Long]): Long =
    text.toLowerCase(Locale.ROOT) match {
      case number(digits, unit) if units.contains(unit) => Math.multiplyExact(digits.toLong, units(unit))
      case _                                            =>
        val names = units.keys.toSeq.filter(_.nonEmpty).sorted.mkString(", ")
        throw new IllegalArgumentException(s"use a whole number with one of the units $names")
    }

  /** Nanoseconds since 1970. A time without a zone would mean something else on each machine, so it is refused. */
  def timeNs(text: String): Long = {
    val instant = text.toLongOption match {
      case Some(ms) => Instant.ofEpochMilli(ms)
      case None     =>
        try OffsetDateTime.parse(text.replaceFirst(" ", "T")).toInstant
        catch {
          case _: DateTimeException =>
            throw new IllegalArgumentException(
              "use milliseconds since 1970, or a time with its zone such as 2026-01-31T12:00:00Z"
            )
        }
    }
    if (instant.isBefore(Instant.EPOCH)) throw new IllegalArgumentException("it lies before 1970")
    Math.addExact(Math.multiplyExact(instant.getEpochSecond, 1000000000L), instant.getNano.toLong)
  }
}
