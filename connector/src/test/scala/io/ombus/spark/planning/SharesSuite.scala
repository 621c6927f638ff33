package io.ombus.spark.planning

import scala.util.Random

import munit.FunSuite

class SharesSuite extends FunSuite {

  test("a limit that covers all changes nothing") {
    assertEquals(Shares.proportional(100, Seq(3L, 0L, 97L)), Seq(3L, 0L, 97L))
    assertEquals(Shares.proportional(5, Nil), Nil)
  }

  test("a limit is divided by weight") {
    assertEquals(Shares.proportional(10, Seq(30L, 10L)), Seq(8L, 2L))
    assertEquals(Shares.proportional(1, Seq(5L, 5L)), Seq(1L, 0L))
  }

  test("shares add up, exceed no weight, and no stream starves") {
    val random = new Random(7)
    (1 to 2000).foreach { _ =>
      val weights =
        Seq.fill(1 + random.nextInt(8))(random.nextLong(if (random.nextBoolean()) 10L else Long.MaxValue / 16))
      val total = 1 + random.nextLong(1000000)
      val shares = Shares.proportional(total, weights)
      assertEquals(shares.sum, math.min(total, weights.sum), s"$total of $weights")
      shares.zip(weights).foreach { case (share, weight) =>
        assert(share >= 0 && share <= weight, s"$total of $weights")
      }
    }
    // With a limit of one, each of three streams gets its turn.
    var waiting = Seq(3L, 3L, 3L)
    (1 to 9).foreach(_ => waiting = waiting.zip(Shares.proportional(1, waiting)).map { case (w, s) => w - s })
    assertEquals(waiting, Seq(0L, 0L, 0L))
  }

  private val MiB = 1L << 20

  test("a small range is one task, a large one uses all cores, a huge one is cut further") {
    assertEquals(Shares.partitions(Seq(1 * MiB), 8, None), Seq(1))
    assertEquals(Shares.partitions(Seq(16 * MiB), 8, None), Seq(4))
    assertEquals(Shares.partitions(Seq(1000 * MiB), 2, None), Seq(2))
    assertEquals(Shares.partitions(Seq(1300 * MiB), 2, None), Seq(4))
  }

  test("streams share partitions by bytes; an empty one has none") {
    assertEquals(Shares.partitions(Seq(300 * MiB, 0L, 100 * MiB), 4, None), Seq(3, 0, 1))
    assertEquals(Shares.partitions(Seq(0L), 4, Some(9)), Seq(0))
    assertEquals(Shares.partitions(Seq(1000 * MiB, 1L), 4, None), Seq(4, 1))
  }

  test("minPartitions is kept under any skew") {
    val random = new Random(8)
    (1 to 1000).foreach { _ =>
      val bytes = Seq.fill(1 + random.nextInt(6))(1 + random.nextLong(1L << 40))
      val wanted = 1 + random.nextInt(64)
      assert(Shares.partitions(bytes, 4, Some(wanted)).sum >= wanted, s"$wanted of $bytes")
    }
  }

  test("sets of types") {
    assertEquals(TypeMask.parse("1, 3,0x80-0x82").toString, "1,3,128-130")
    assertEquals(TypeMask.parse("0-255"), TypeMask.all)
    assertEquals(TypeMask.all.toFilter, Vector(0L, 0L, 0L, 0L))
    assert(TypeMask.parse("64").contains(64) && !TypeMask.parse("64").contains(0))
    assertEquals(TypeMask.parse("007").toString, "7")
    assert(TypeMask.none.isEmpty && TypeMask.all.not.isEmpty)
  }
}
