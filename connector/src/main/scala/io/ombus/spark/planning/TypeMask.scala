package io.ombus.spark.planning

/** A set of wal_types as 256 bits. */
final case class TypeMask(words: Vector[Long]) {

  def contains(walType: Int): Boolean = (words(walType >> 6) >>> (walType & 63) & 1) != 0
  def and(other: TypeMask): TypeMask = combine(other)(_ & _)
  def or(other: TypeMask): TypeMask = combine(other)(_ | _)
  def not: TypeMask = TypeMask(words.map(~_))
  def isEmpty: Boolean = words.forall(_ == 0)
  def isAll: Boolean = words.forall(_ == -1L)

  /** In the library's words, where no bit at all stands for every type. */
  def toFilter: Vector[Long] = if (isAll) TypeMask.none.words else words

  /** Like `1-3,128`. */
  override def toString: String = {
    val types = (0 until TypeMask.Count).filter(contains)
    types
      .foldLeft(List.empty[(Int, Int)]) {
        case ((first, last) :: rest, next) if next == last + 1 => (first, next) :: rest
        case (ranges, next)                                    => (next, next) :: ranges
      }
      .reverse
      .map { case (first, last) => if (first == last) s"$first" else s"$first-$last" }
      .mkString(",")
  }

  private def combine(other: TypeMask)(f: (Long, Long) => Long): TypeMask =
    TypeMask(words.zip(other.words).map { case (a, b) => f(a, b) })
}

object TypeMask {
  val Count = 256

  val none: TypeMask = TypeMask(Vector(0L, 0L, 0L, 0L))
  val all: TypeMask = none.not

  def where(accepts: Int => Boolean): TypeMask = TypeMask(Vector.tabulate(4) { word =>
    (0 until 64).foldLeft(0L)((bits, bit) => if (accepts(word * 64 + bit)) bits | 1L << bit else bits)
  })

  def of(types: Iterable[Int]): TypeMask = {
    val set = types.toSet
    where(set.contains)
  }

  private val item = "(0[xX][0-9a-fA-F]{1,2}|[0-9]{1,3})(?:\\s*-\\s*(0[xX][0-9a-fA-F]{1,2}|[0-9]{1,3}))?".r

  /** `1,3,0x80-0xFC`. */
  def parse(text: String): TypeMask = text
    .split(",", -1)
    .map(_.trim)
    .map {
      case item(first, null)                                  => of(Seq(number(first)))
      case item(first, last) if number(first) <= number(last) => of(number(first) to number(last))
      case other                                              =>
        throw new IllegalArgumentException(s"'$other' is no wal_type: use numbers and ranges such as 1,3,0x80-0xFC")
    }
    .reduce(_ or _)

  private def number(text: String): Int = {
    val value =
      Integer.decode(if (text.toLowerCase.startsWith("0x")) text else text.replaceFirst("^0+(?=.)", "")).intValue
    if (value >= Count) throw new IllegalArgumentException(s"wal_type $text is above 255")
    value
  }
}
