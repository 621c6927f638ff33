ThisBuild / organization := "io.ombus"
ThisBuild / version := IO.read(file("VERSION")).trim
ThisBuild / scalaVersion := Dependencies.scalaVersion
ThisBuild / licenses := Seq(License.Apache2)

val nativeLibrary = settingKey[File]("libombus as `make native` builds it; goes into the jar")

lazy val root = project
  .in(file("."))
  .aggregate(connector)
  .settings(name := "ombus", publish / skip := true)

lazy val connector = project
  .in(file("connector"))
  .settings(
    name := "ombus-spark",
    libraryDependencies ++= Seq(Dependencies.spark, Dependencies.jnrFfi, Dependencies.munit),
    scalacOptions ++= Seq(
      "-release:17",
      "-deprecation",
      "-feature",
      "-unchecked",
      "-Xlint",
      "-Werror"
    ),
    nativeLibrary := (ThisBuild / baseDirectory).value / "native" / "build" / "libombus.so",
    Compile / resourceGenerators += Def.task {
      val license = (ThisBuild / baseDirectory).value / "LICENSE"
      JarResources.generate(nativeLibrary.value, version.value, license, (Compile / resourceManaged).value)
    },

    // One jar with jnr-ffi inside and Spark and Scala outside.
    assembly / assemblyOutputPath :=
      target.value / s"${name.value}_${scalaBinaryVersion.value}-${version.value}.jar",
    assembly / assemblyOption ~= (_.withIncludeScala(false)),
    assembly / assemblyShadeRules := Shading.rules,
    assembly / assemblyMergeStrategy := Shading.mergeStrategy,

    // Tests run in a JVM of their own, which also gets the assembled jar to start further ones with it.
    Test / fork := true,
    Test / javaOptions += s"-Dombus.test.jar=${assembly.value}",
    // munit's lines go through sbt's log, which colours nothing in a file.
    Test / testOptions += Tests.Argument("+l")
  )
