package io.ombus.spark.streams

import java.net.URLDecoder
import java.nio.charset.StandardCharsets

import io.ombus.spark.OmbusErrors

/** An address of a stream, as Python and the command line read it too. */
sealed trait StreamUri {

  /** As the user wrote it. */
  def text: String
}

object StreamUri {

  /** A log directory, or a pattern of such. */
  final case class Log(text: String, path: String, name: Option[String]) extends StreamUri {
    def isPattern: Boolean = path.exists("*?[{".contains(_))
  }

  /** A ring on this host; `log` is where its log is.
    * @param ring
    *   name of the shared-memory object
    */
  final case class Ring(text: String, ring: String, name: String, log: Option[String]) extends StreamUri

  final case class Tcp(text: String) extends StreamUri

  private val RingPrefix = "om-bus-"
  private val address = "([a-zA-Z][a-zA-Z0-9+.-]*)://(.*)".r
  // A '?' of a pattern is not followed by key=.
  private val withQuery = "(.*?)\\?([a-zA-Z]+=.*)".r

  /** A comma-separated list; a comma inside the braces of a pattern is not a separator. */
  def parseList(text: String): Seq[StreamUri] = {
    val items = text.split(",(?![^{]*\\})", -1).map(_.trim).toSeq
    if (items.forall(_.isEmpty)) throw OmbusErrors.noUri()
    items.map(parse)
  }

  def parse(text: String): StreamUri = text match {
    case address(scheme, rest) =>
      val (place, query) = rest match {
        case withQuery(before, after) => (before, after)
        case _                        => (rest, "")
      }
      scheme.toLowerCase match {
        case "log" => log(text, place, options(text, query, Set("name")))
        case "shm" => ring(text, place, options(text, query, Set("name", "log")))
        case "tcp" => Tcp(text)
        case other => throw OmbusErrors.badUri(text, s"there is no scheme $other://: use log://, shm:// or tcp://")
      }
    case ""                           => throw OmbusErrors.badUri(text, "an empty address in the list")
    case path if path.startsWith("/") =>
      throw OmbusErrors.badUri(text, s"an address has a scheme: a log directory is log://$path")
    case _ => throw OmbusErrors.badUri(text, "an address has a scheme: log:///dir, shm://name or tcp://host:port/name")
  }

  private def log(text: String, place: String, options: Map[String, String]): Log = {
    if (!place.startsWith("/"))
      throw OmbusErrors.badUri(text, s"a directory has three slashes: log:///$place")
    val path = decode(place).replaceAll("/+$", "")
    if (path.isEmpty) throw OmbusErrors.badUri(text, "no directory given")
    val uri = Log(text, path, options.get("name").map(checkName(text, _)))
    if (uri.isPattern && uri.name.isDefined) throw OmbusErrors.badUri(text, "a pattern of logs cannot have one ?name=")
    uri
  }

  /** `shm://engine-0` is the object om-bus-engine-0; `shm:///raw` the object raw. */
  private def ring(text: String, place: String, options: Map[String, String]): Ring = {
    val raw = place.startsWith("/")
    val name = decode(place.stripPrefix("/"))
    if (name.isEmpty || name.contains("/")) throw OmbusErrors.badUri(text, "a ring has one name without slashes")
    val directory = options.get("log").map(_.replaceAll("/+$", ""))
    directory
      .filterNot(_.startsWith("/"))
      .foreach(d => throw OmbusErrors.badUri(text, s"?log=$d is not an absolute path"))
    Ring(
      text,
      if (raw) s"/$name" else s"/$RingPrefix$name",
      checkName(text, options.getOrElse("name", name.stripPrefix(RingPrefix))),
      directory
    )
  }

  private def options(text: String, query: String, known: Set[String]): Map[String, String] =
    if (query.isEmpty) Map.empty
    else
      query
        .split("&")
        .map(_.split("=", 2))
        .map {
          case Array(key, value) if known(key) && value.nonEmpty => key -> decode(value)
          case Array(key, _) if known(key) => throw OmbusErrors.badUri(text, s"?$key= needs a value")
          case other                       =>
            throw OmbusErrors.badUri(
              text,
              s"there is no ?${other.head}= here; known: ${known.toSeq.sorted.mkString(", ")}"
            )
        }
        .toMap

  /** Names become keys of the offsets, where names with two underscores are reserved. */
  private[streams] def checkName(text: String, name: String): String = {
    if (name.isEmpty || name.startsWith("__") || name == "*")
      throw OmbusErrors.badUri(text, s"a stream cannot be named '$name': give it another name with ?name=NAME")
    name
  }

  private def decode(text: String): String = {
    val decoded =
      try URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8)
      catch {
        case _: IllegalArgumentException => throw OmbusErrors.badUri(text, "a % must be followed by two hex digits")
      }
    if (decoded.indexOf('\u0000') >= 0) throw OmbusErrors.badUri(text, "a name cannot hold a NUL")
    decoded
  }
}
