package io.ombus.spark

import munit.FunSuite

class OmbusOffsetSuite extends FunSuite {

  test("JSON goes round") {
    val offset = OmbusOffset(Seq(("engine-1", 7L, "ab12"), ("engine-0", Long.MaxValue, ""), ("ö \"x\"", 0L, "cd")))
    assertEquals(OmbusOffset.parse(offset.json), offset)
    assertEquals(OmbusOffset.parse(offset.json).json, offset.json)
  }

  test("its form is fixed: checkpoints of this release must be read for ever") {
    val json = """{"engine-0":123,"engine-1":7,"__ids":{"engine-0":"5f3a"}}"""
    assertEquals(OmbusOffset(Seq(("engine-1", 7L, ""), ("engine-0", 123L, "5f3a"))).json, json)
    assertEquals(OmbusOffset.parse(json).positions("engine-0"), 123L)
  }

  test("a plain map is accepted") {
    assertEquals(OmbusOffset.parse("""{"a": 1}"""), OmbusOffset(Seq(("a", 1L, ""))))
    assertEquals(OmbusOffset.parse("{}"), OmbusOffset.empty)
  }

  test("what is no offset is refused") {
    Seq(
      "",
      "[]",
      "5",
      "{",
      """{"a": "x"}""",
      """{"a": -1}""",
      """{"a": 1.5}""",
      """{"a": 99999999999999999999}""",
      "{} {}"
    ).foreach { json =>
      val message = intercept[OmbusException](OmbusOffset.parse(json)).getMessage
      assert(message.contains("OMBUS_BAD_OFFSET"), s"$json: $message")
    }
  }

  test("the consumer's name comes from the checkpoint") {
    assert(ConsumerPosition.derive("file:/data/checkpoints/my query/sources/0").matches("spark-my-query-[0-9a-f]{8}"))
    assertNotEquals(ConsumerPosition.derive("/c/q/sources/0"), ConsumerPosition.derive("/c/q/sources/1"))
    assert(ConsumerPosition.isTemporary("file:/tmp/temporary-5b0e/sources/0"))
  }

  test("misspelt words are found") {
    assertEquals(Spelling.nearest("startingOffset", Seq("endingOffsets", "startingOffsets")), Some("startingOffsets"))
    assertEquals(Spelling.nearest("xyz", Seq("endingOffsets")), None)
    assertEquals(Spelling.distance("kitten", "sitting"), 3)
  }
}
