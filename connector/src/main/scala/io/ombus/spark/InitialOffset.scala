package io.ombus.spark

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets
import java.util.UUID

import org.apache.hadoop.fs.{FileContext, Options, Path}
import org.apache.spark.SparkContext

/** The offset that a query began with, in its checkpoint. Spark's own log holds the ends of batches only; were the first
  * batch to be repeated after a crash, `latest` would by then mean something else.
  */
private[spark] final class InitialOffset(checkpointLocation: String) {
  private val file = new Path(checkpointLocation, "ombus-initial-offset")

  private lazy val files = FileContext.getFileContext(file.toUri, SparkContext.getOrCreate().hadoopConfiguration)

  def getOrElse(compute: => OmbusOffset): OmbusOffset = read().getOrElse {
    val offset = compute
    write(offset)
    offset
  }

  private def read(): Option[OmbusOffset] =
    try {
      val in = files.open(file)
      try Some(OmbusOffset.parse(new String(in.readAllBytes(), StandardCharsets.UTF_8)))
      finally in.close()
    } catch { case _: FileNotFoundException => None }

  /** Whole or not at all: written beside and renamed. */
  private def write(offset: OmbusOffset): Unit = {
    val draft = new Path(file.getParent, s".${file.getName}.${UUID.randomUUID()}")
    try {
      files.mkdir(file.getParent, null, true)
      val out = files.create(draft, java.util.EnumSet.of(org.apache.hadoop.fs.CreateFlag.CREATE))
      try out.write(offset.json.getBytes(StandardCharsets.UTF_8))
      finally out.close()
      files.rename(draft, file, Options.Rename.OVERWRITE)
    } catch {
      case e: IOException => throw new IOException(s"cannot keep the query's first offset in $file: ${e.getMessage}", e)
    }
  }
}
