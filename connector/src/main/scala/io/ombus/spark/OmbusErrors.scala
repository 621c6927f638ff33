package io.ombus.spark

import org.slf4j.Logger

/** An error of the source with a name that programs can test for; the name also opens the message, in brackets. */
sealed trait OmbusCondition { self: Throwable =>
  def condition: String
}

/** An option or URI that cannot be used. */
final class OmbusOptionException(val condition: String, message: String)
    extends IllegalArgumentException(s"[$condition] $message")
    with OmbusCondition

/** Records that are gone, or a stream that cannot be read. */
final class OmbusException(val condition: String, message: String, cause: Throwable = null)
    extends RuntimeException(s"[$condition] $message", cause)
    with OmbusCondition

/** Every error that the source itself raises: its condition, what it names and what resolves it. */
object OmbusErrors {

  // ---- options and addresses ----

  def unknownOption(name: String, suggestion: Option[String]): OmbusOptionException = {
    val hint = suggestion.fold("docs/spark.md lists them all")(word => s"did you mean '$word'?")
    new OmbusOptionException("OMBUS_UNKNOWN_OPTION", s"there is no option '$name': $hint")
  }

  def badOption(name: String, value: String, reason: String): OmbusOptionException =
    new OmbusOptionException("OMBUS_BAD_OPTION", s"option $name = '$value': $reason")

  def noUri(): OmbusOptionException = new OmbusOptionException(
    "OMBUS_NO_URI",
    "no stream is named: use load(\"log:///dir\"), load(\"shm://name\"), or the option uri"
  )

  def badUri(uri: String, reason: String): OmbusOptionException =
    new OmbusOptionException("OMBUS_BAD_URI", s"'$uri': $reason")

  def tcpNotYet(uri: String): OmbusOptionException = badUri(
    uri,
    s"tcp:// is not in release ${nativebridge.NativeLibrary.connectorVersion} of the connector; it comes with the release " +
      "that has `ombus serve`. Until then read log:// on a file system that all executors see"
  )

  def duplicateName(name: String, first: String, second: String): OmbusOptionException =
    new OmbusOptionException(
      "OMBUS_DUPLICATE_STREAM",
      s"'$first' and '$second' are both named $name: give one another name with ?name=NAME"
    )

  def ringHasNoHistory(uri: String): OmbusOptionException = badUri(
    uri,
    "a ring holds no history for spark.read: name its log with ?log=/dir, or read it with spark.readStream"
  )

  def unlistedStream(option: String, stream: String): OmbusOptionException = new OmbusOptionException(
    "OMBUS_UNLISTED_STREAM",
    s"option $option has no position for the stream $stream: add it, or add \"*\": \"earliest\" for all others"
  )

  def unknownStream(option: String, name: String, streams: Iterable[String]): OmbusOptionException = {
    val hint =
      Spelling.nearest(name, streams.toSeq).fold(s"there are ${streams.mkString(", ")}")(s => s"did you mean '$s'?")
    new OmbusOptionException(
      "OMBUS_UNKNOWN_STREAM",
      s"option $option names the stream '$name', which is not read: $hint"
    )
  }

  def spoolNeedsLocalPath(uri: String, checkpoint: String): OmbusOptionException = new OmbusOptionException(
    "OMBUS_SPOOL_PATH",
    s"'$uri' is a ring without a log, and its spool cannot lie beside the checkpoint $checkpoint, which is not a " +
      "local path: set spoolPath to a local directory, or name the ring's log with ?log=/dir"
  )

  // ---- streams ----

  def notFound(uri: String, where: String, cause: Throwable): OmbusException = new OmbusException(
    "OMBUS_STREAM_NOT_FOUND",
    s"$uri: there is no stream here ($where): ${cause.getMessage}. Start its producer first, or check the address",
    cause
  )

  def notVisible(stream: String, directory: String, host: String, cause: Throwable): OmbusException =
    new OmbusException(
      "OMBUS_LOG_NOT_VISIBLE",
      s"stream $stream: the executor on $host does not see the log $directory. A log:// path must be on a file system that " +
        "every executor sees, and shm:// needs driver and executors on the ring's host. Else run `ombus serve` where the " +
        s"log is and read tcp:// (${cause.getMessage})",
      cause
    )

  def unreadable(stream: String, from: Long, to: Long, cause: Throwable): OmbusException = new OmbusException(
    "OMBUS_UNREADABLE",
    s"stream $stream, wal_seq $from to ${to - 1}: ${cause.getMessage}",
    cause
  )

  def shortPayload(stream: String, seq: Long, length: Long, needed: String): OmbusException = new OmbusException(
    "OMBUS_SHORT_PAYLOAD",
    s"stream $stream, wal_seq $seq: its payload has $length bytes, but $needed. " +
      "Correct payloadSchema or walTypes, or use mode=PERMISSIVE (nulls) or DROPMALFORMED (no row)"
  )

  def malformedOffset(json: String, reason: String): OmbusException = new OmbusException(
    "OMBUS_BAD_OFFSET",
    s"the offset '$json' in the checkpoint cannot be used: $reason. Was it written by this source?"
  )

  // ---- lost records: fatal or not as failOnDataLoss says ----

  def pruned(stream: String, from: Long, to: Long): OmbusException = new OmbusException(
    "OMBUS_DATA_LOSS_PRUNED",
    s"stream $stream: wal_seq $from to ${to - 1} were removed by the log's retention before this query read them. $resume"
  )

  def damaged(stream: String, from: Long, to: Long, cause: Throwable): OmbusException = new OmbusException(
    "OMBUS_DATA_LOSS_DAMAGED",
    s"stream $stream: damage in wal_seq $from to ${to - 1}: ${cause.getMessage}. Restore the segment from a copy, or $accept",
    cause
  )

  def recreated(stream: String, oldId: String, newId: String, position: Long): OmbusException = new OmbusException(
    "OMBUS_DATA_LOSS_RECREATED",
    s"stream $stream: the log was deleted and created again (its identity was $oldId and is now $newId), so the query's " +
      s"position, wal_seq $position, means nothing in it. Start with a new checkpoint, or $accept and read the new log from " +
      "its start"
  )

  def beyondEnd(stream: String, position: Long, last: Long): OmbusException = new OmbusException(
    "OMBUS_DATA_LOSS_TRUNCATED",
    s"stream $stream: the query had read up to wal_seq ${position - 1}, but the log ends at $last: records that were there are " +
      s"gone (a power cut before they were synced, or a restored copy). With durableOnly=true this cannot happen. $resume"
  )

  def vanished(stream: String): OmbusException = new OmbusException(
    "OMBUS_DATA_LOSS_VANISHED",
    s"stream $stream is in the checkpoint, but not among the streams that are there now. Bring it back, start with a new " +
      s"checkpoint, or $accept"
  )

  def spoolMissed(stream: String, from: Long, to: Long, why: String): OmbusException = new OmbusException(
    "OMBUS_DATA_LOSS_RING",
    s"stream $stream: wal_seq $from to ${to - 1} went through the ring while nobody could spool them ($why). Give the ring a " +
      s"log and read shm://NAME?log=/dir, or $accept"
  )

  def spoolFailed(stream: String, cause: Throwable): OmbusException = new OmbusException(
    "OMBUS_SPOOL_FAILED",
    s"stream $stream: the ring cannot be spooled any more: ${cause.getMessage}",
    cause
  )

  private val accept = "accept the loss with failOnDataLoss=false"
  private val resume = "Accept the loss with failOnDataLoss=false, or move the query with `ombus checkpoint rewind`"

  /** The one place where lost records become an error or, with failOnDataLoss=false, a warning. */
  def reportDataLoss(failOnDataLoss: Boolean, log: Logger, loss: OmbusException): Unit = {
    if (failOnDataLoss) throw loss
    log.warn(s"data loss accepted by failOnDataLoss=false: ${loss.getMessage}")
  }
}
