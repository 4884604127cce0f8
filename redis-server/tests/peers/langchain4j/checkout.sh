#!/bin/sh
# checkout.sh REPOSITORY TAG FOLDER: tests that no package has, compiled.
set -e
rm -rf "$3"
mkdir -p "$3/classes"
git -C "$1" archive "$2" | tar x -C "$3"
cd "$3"
find . -name '*.java' >sources
javac -nowarn -cp "../target/classes:../lib/*" -d classes @sources
