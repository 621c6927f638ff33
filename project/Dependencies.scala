import sbt._

/** The one place where the versions of the JVM side are pinned (sbt's own: build.properties, its plugins: plugins.sbt). */
object Dependencies {
  val scalaVersion = "2.13.16"

  /** The oldest Spark that the connector must run on. Compiling on a newer one would let scalac emit
    * forwarders that name types which this one lacks.
    */
  val sparkVersion = "4.0.2"

  val spark = "org.apache.spark" %% "spark-sql" % sparkVersion % Provided
  val jnrFfi = "com.github.jnr" % "jnr-ffi" % "2.2.19"
  val munit = "org.scalameta" %% "munit" % "1.2.1" % Test
}
