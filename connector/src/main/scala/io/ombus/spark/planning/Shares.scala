package io.ombus.spark.planning

/** The arithmetic of dividing limits and partitions among streams. Pure, so that a suite can try it to the end. */
object Shares {

  /** Divides `total` by weight, in whole numbers that add up to min(total, sum of weights) and never exceed a weight. */
  def proportional(total: Long, weights: Seq[Long]): Seq[Long] = {
    val sum = weights.map(BigInt(_)).sum
    if (sum <= total) return weights
    val floors = weights.map(weight => (BigInt(total) * weight / sum).toLong)
    val remainders = weights.map(weight => BigInt(total) * weight % sum)
    val left = (total - floors.sum).toInt
    // Largest remainder first; of equals the earlier one, which then has less waiting and gives way in the next round.
    val favoured = weights.indices.sortBy(i => (-remainders(i), i)).take(left).toSet
    floors.zipWithIndex.map { case (floor, i) => if (favoured(i)) floor + 1 else floor }
  }

  /** Smallest part that is worth a task of its own. */
  val MinPartitionBytes: Long = 4L << 20

  /** Largest part when nobody asks for a number: a failed task repeats no more than this. */
  val MaxPartitionBytes: Long = 512L << 20

  /** How many partitions each stream's range is cut into.
    * @param bytes
    *   of each range; 0 = an empty one, which gets none
    * @param cores
    *   tasks that can run at once
    * @param minPartitions
    *   what the user asks for; cuts are then made even where they are small
    */
  def partitions(bytes: Seq[Long], cores: Int, minPartitions: Option[Int]): Seq[Int] = {
    val total = bytes.sum
    val wanted = minPartitions match {
      case Some(count) => count.toLong
      case None        =>
        val useful = math.max(1L, total / MinPartitionBytes)
        val rounds = math.max(1L, (total + MaxPartitionBytes * cores - 1) / (MaxPartitionBytes * cores))
        math.min(useful, cores * rounds) // all cores end together, round by round
    }
    bytes.map { size =>
      if (size == 0) 0
      else if (minPartitions.isDefined) math.ceil(wanted.toDouble * size / total).toInt // never fewer than asked for
      else math.max(1L, math.round(wanted.toDouble * size / total)).toInt
    }
  }
}
