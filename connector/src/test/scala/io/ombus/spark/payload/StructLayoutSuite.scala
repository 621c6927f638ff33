package io.ombus.spark.payload

import munit.FunSuite

class StructLayoutSuite extends FunSuite {

  private def places(text: String, packed: Boolean = false): String =
    StructLayout
      .parse(text, packed)
      .fields
      .map(f => s"${f.name}:${f.dataType.simpleString}@${f.offset}+${f.width}")
      .mkString(" ")

  test("natural alignment is that of C") {
    assertEquals(
      places("a int8, b int32, c uint8, d double, e int16"),
      "a:tinyint@0+1 b:int@4+4 c:smallint@8+1 d:double@16+8 e:smallint@24+2"
    )
    assertEquals(StructLayout.parse("a int8, b int32", packed = false).minSize, 8)
  }

  test("packed fields lie close together") {
    assertEquals(places("a int8, b int32, c uint64", packed = true), "a:tinyint@0+1 b:int@1+4 c:decimal(20,0)@5+8")
  }

  test("every type") {
    assertEquals(
      places(
        "a bigint, b uint32, c float, d bool, e decimal(18,4), f decimal(9,2,int32), g timestamp(ns), h string(3), i binary(2), j uint16"
      ),
      "a:bigint@0+8 b:bigint@8+4 c:float@12+4 d:boolean@16+1 e:decimal(18,4)@24+8 f:decimal(9,2)@32+4 g:timestamp@40+8 " +
        "h:string@48+3 i:binary@51+2 j:int@54+2"
    )
  }

  test("offsets, padding, the rest of the payload, quoted names") {
    assertEquals(places("a int32 @ 10, b int8, _ pad(5), c int8"), "a:int@10+4 b:tinyint@14+1 c:tinyint@20+1")
    assertEquals(places("`my field` int32, note string"), "my field:int@0+4 note:string@4+0")
    assertEquals(places("Größe int32"), "Größe:int@0+4")
  }

  test("what is wrong is told with the field") {
    Seq(
      "" -> "no field",
      "a" -> "a field is `name type`",
      "a int32,, b int32" -> "a field is `name type`",
      "a doubel" -> "did you mean double?",
      "a blob" -> "there is no such type",
      "a int32, A int8" -> "two fields are named",
      "a timestamp" -> "say what it counts",
      "a timestamp(min)" -> "say what it counts",
      "a decimal(5)" -> "decimal(PRECISION, SCALE)",
      "a decimal(50,2)" -> "decimal(1 to 38",
      "a decimal(5,2,float)" -> "no integer type",
      "a string(0)" -> "no number of bytes",
      "a string, b int8" -> "nothing can follow",
      "a int32 @ 99999999" -> "largest payload",
      "a int32(4)" -> "there is no such type",
      "_ pad(4)" -> "no field"
    ).foreach { case (text, word) =>
      val message = intercept[IllegalArgumentException](StructLayout.parse(text, packed = false)).getMessage
      assert(message.contains(word), s"$text: $message")
    }
  }

  test("OpenMatch's columns") {
    val names = PayloadFormat.OpenMatch.schema.fieldNames.toSeq
    assertEquals(names.head, "event")
    assert(Seq("order_id", "side", "price", "product_id", "event_time", "aux_data").forall(names.contains))
    assertEquals(names.distinct, names)
  }
}
