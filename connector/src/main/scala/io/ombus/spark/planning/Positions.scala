package io.ombus.spark.planning

import org.slf4j.LoggerFactory

import io.ombus.spark.{OmbusErrors, OmbusOptions}
import io.ombus.spark.streams.{StreamSource, StreamStatus}

/** Turns what the user says of start and end into positions. */
object Positions {
  private val log = LoggerFactory.getLogger("io.ombus.spark.planning.Positions")

  /** Of an empty log: where its first record will be read. */
  def earliest(status: StreamStatus): Long = if (status.first == 0) status.next else status.first

  def starting(bound: OffsetBound, stream: StreamSource, status: StreamStatus): Long = bound match {
    case OffsetBound.Earliest                      => earliest(status)
    case OffsetBound.Latest                        => status.next
    case OffsetBound.AtTime(timeNs)                => if (status.first == 0) status.next else stream.positionAt(timeNs)
    case OffsetBound.PerStream(positions, default) =>
      val option = OmbusOptions.StartingOffsets.name
      positions
        .get(stream.name)
        .orElse(default)
        .getOrElse(throw OmbusErrors.unlistedStream(option, stream.name)) match {
        case OffsetBound.First                        => earliest(status)
        case OffsetBound.Next                         => status.next
        case OffsetBound.At(seq) if seq > status.next =>
          throw OmbusErrors.badOption(
            option,
            s"${stream.name}: $seq",
            s"the stream has records up to ${status.next - 1} only"
          )
        case OffsetBound.At(seq) => math.max(seq, 1)
      }
  }

  def ending(bound: EndBound, stream: StreamSource, status: StreamStatus): Long = bound match {
    case EndBound.Latest                        => status.next
    case EndBound.AtTime(timeNs)                => if (status.first == 0) status.next else stream.positionAt(timeNs)
    case EndBound.PerStream(positions, default) =>
      val option = OmbusOptions.EndingOffsets.name
      positions
        .get(stream.name)
        .orElse(default)
        .getOrElse(throw OmbusErrors.unlistedStream(option, stream.name)) match {
        case OffsetBound.First   => earliest(status)
        case OffsetBound.Next    => status.next
        case OffsetBound.At(seq) =>
          if (seq > status.next)
            log.warn(
              s"$option: stream ${stream.name} has records up to ${status.next - 1} only; reading ends there, not at $seq"
            )
          math.min(math.max(seq, 1), status.next)
      }
  }

  /** Every stream that an option names must be one that is read. */
  def checkNames(options: OmbusOptions, streams: Iterable[String]): Unit = {
    def check(option: String, names: Iterable[String]): Unit =
      names.filterNot(streams.toSet).foreach(name => throw OmbusErrors.unknownStream(option, name, streams))
    options.starting match {
      case OffsetBound.PerStream(positions, _) => check(OmbusOptions.StartingOffsets.name, positions.keys)
      case _                                   =>
    }
    options.ending match {
      case EndBound.PerStream(positions, _) => check(OmbusOptions.EndingOffsets.name, positions.keys)
      case _                                =>
    }
  }
}
