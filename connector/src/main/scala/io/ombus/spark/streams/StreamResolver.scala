package io.ombus.spark.streams

import java.io.IOException
import java.nio.file.{Files, FileSystems, FileVisitOption, Path}

import scala.jdk.CollectionConverters._

import io.ombus.spark.OmbusErrors
import io.ombus.spark.nativebridge.{NativeCode, OmbusNativeException}

/** The streams that a list of addresses means now. Those that were opened before are kept open; a pattern is matched anew
  * each time, so that streams which come later are found.
  *
  * @param spoolDirectory
  *   where a ring without a log is spooled, given its address and name; fails where rings cannot be read
  */
final class StreamResolver(
    uris: Seq[StreamUri],
    durableOnly: Boolean,
    spoolDirectory: (StreamUri.Ring) => String
) extends AutoCloseable {

  private var open = Map.empty[String, StreamSource]

  uris.foreach {
    case tcp: StreamUri.Tcp => throw OmbusErrors.tcpNotYet(tcp.text)
    case _                  =>
  }

  /** By name. An address without pattern must be there at the first call; later it is left out when it is gone. */
  def streams(): Map[String, StreamSource] = synchronized {
    val found = uris.flatMap {
      case uri: StreamUri.Log if uri.isPattern => matching(uri)
      case uri: StreamUri.Log  => Seq((uri.name.getOrElse(nameOf(uri.text, uri.path)), uri.text, uri.path, None))
      case uri: StreamUri.Ring =>
        Seq((uri.name, uri.text, uri.log.getOrElse(spoolDirectory(uri)), Some(uri).filter(_.log.isEmpty)))
      case uri: StreamUri.Tcp => throw OmbusErrors.tcpNotYet(uri.text)
    }
    found.groupBy(_._1).foreach { case (name, same) =>
      val places = same.map(_._3).distinct
      if (places.size > 1) throw OmbusErrors.duplicateName(name, places(0), places(1))
    }
    val now = found
      .distinctBy(_._1)
      .flatMap { case (name, uri, directory, ring) =>
        open.get(name).orElse(connect(name, uri, directory, ring)).map(name -> _)
      }
      .toMap
    (open -- now.keys).values.foreach(_.close())
    open = now
    now
  }

  private def connect(
      name: String,
      uri: String,
      directory: String,
      ring: Option[StreamUri.Ring]
  ): Option[StreamSource] = {
    val stream = ring match {
      case Some(found) => new SpoolStream(uri, name, found.ring, directory, durableOnly)
      case None        => new LogStream(uri, name, directory, durableOnly)
    }
    try {
      stream.status()
      Some(stream)
    } catch {
      case e: OmbusNativeException =>
        stream.close()
        // A directory that matches a pattern but holds no log yet is one that comes later.
        val isPattern = uris.exists { case log: StreamUri.Log => log.text == uri && log.isPattern; case _ => false }
        if (isPattern && e.code == NativeCode.LogNotFound) None
        else throw OmbusErrors.notFound(uri, directory, e)
    }
  }

  private def matching(uri: StreamUri.Log): Seq[(String, String, String, Option[StreamUri.Ring])] = {
    val fixed = uri.path.split("/").takeWhile(part => !part.exists("*?[{".contains(_))).mkString("/")
    val start = Path.of(if (fixed.isEmpty) "/" else fixed)
    val matcher =
      try FileSystems.getDefault.getPathMatcher(s"glob:${uri.path}")
      catch { case e: IllegalArgumentException => throw OmbusErrors.badUri(uri.text, s"bad pattern: ${e.getMessage}") }
    val depth = uri.path.count(_ == '/') - fixed.count(_ == '/')
    if (!Files.isDirectory(start)) return Nil
    try {
      val walk =
        Files.find(
          start,
          depth,
          (path, found) => found.isDirectory && matcher.matches(path),
          FileVisitOption.FOLLOW_LINKS
        )
      try
        walk.iterator.asScala
          .map(path => (nameOf(uri.text, path.toString), uri.text, path.toString, None))
          .toVector
          .sortBy(_._1)
      finally walk.close()
    } catch {
      case e: IOException => throw OmbusErrors.badUri(uri.text, s"cannot list $start: $e")
    }
  }

  private def nameOf(uri: String, directory: String): String =
    StreamUri.checkName(uri, directory.substring(directory.lastIndexOf('/') + 1))

  override def close(): Unit = synchronized {
    open.values.foreach(_.close())
    open = Map.empty
  }
}
