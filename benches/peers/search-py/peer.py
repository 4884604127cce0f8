"""Libraries that search in their own process: what `cargo xtask search` compares servers with.

search-floors FOLDER DIMENSIONS reads the files that it has written there, and prints a line of JSON for each figure. Dimensions
are 0 for documents. Times are this process's CPU time by one thread.
"""

import json
import sys
import time
from pathlib import Path

EFS = [10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640]
RECALLS = [0.95, 0.99]
ROUNDS = 20


def say(**figures):
    print(json.dumps(figures), flush=True)


def documents(folder):
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("body", stored=True, tokenizer_name="en_stem")
    schema.add_text_field("tag", stored=True, tokenizer_name="raw")
    schema.add_integer_field("price", stored=True, fast=True)
    files = folder / "tantivy"
    files.mkdir(exist_ok=True)
    index = tantivy.Index(schema.build(), path=str(files), reuse=False)
    rows = [line.rstrip("\n").split("\t") for line in open(folder / "documents.tsv")]
    begun = time.process_time()
    writer = index.writer(num_threads=1)
    for body, tag, price in rows:
        writer.add_document(tantivy.Document(body=body, tag=tag, price=int(price)))
    writer.commit()
    writer.wait_merging_threads()
    cpu = (time.process_time() - begun) * 1e6 / len(rows)
    size = sum(file.stat().st_size for file in files.iterdir())
    say(library="tantivy", cpu=cpu, bytes=size / len(rows))
    index.reload()
    searcher = index.searcher()
    questions = {}
    for line in open(folder / "questions.tsv"):
        name, query = line.rstrip("\n").split("\t")
        questions.setdefault(name, []).append(query)
    for name, queries in questions.items():
        begun = time.process_time()
        for _ in range(ROUNDS):
            for query in queries:
                found = searcher.search(index.parse_query(query, ["body"]), 10)
                assert found.count > 0, query
                for _, address in found.hits:
                    searcher.doc(address)
        cpu = (time.process_time() - begun) * 1e6 / ROUNDS / len(queries)
        say(library="tantivy", question=name, cpu=cpu, recall=None, ef=None)


def vectors(folder, dimensions):
    import numpy
    from usearch.index import Index

    put = numpy.fromfile(folder / "vectors.f32", dtype=numpy.float32).reshape(-1, dimensions)
    asked = numpy.fromfile(folder / "asked.f32", dtype=numpy.float32).reshape(-1, dimensions)
    exact = numpy.fromfile(folder / "exact.u64", dtype=numpy.uint64).reshape(len(asked), -1)
    index = Index(ndim=dimensions, metric="l2sq", dtype="f32", connectivity=16, expansion_add=200)
    begun = time.process_time()
    index.add(numpy.arange(len(put), dtype=numpy.uint64), put, threads=1)
    cpu = (time.process_time() - begun) * 1e6 / len(put)
    say(library="usearch", cpu=cpu, bytes=index.memory_usage / len(put))
    for wanted in RECALLS:
        for ef in EFS:
            index.expansion_search = ef
            found = index.search(asked, 10, threads=1).keys
            share = numpy.mean([len(set(one) & set(other)) / 10 for one, other in zip(found, exact)])
            if share >= wanted:
                break
        begun = time.process_time()
        for _ in range(ROUNDS):
            index.search(asked, 10, threads=1)
        cpu = (time.process_time() - begun) * 1e6 / ROUNDS / len(asked)
        say(library="usearch", question=f"the nearest ten, recall {wanted}", cpu=cpu, recall=float(share), ef=ef)


if __name__ == "__main__":
    dimensions = int(sys.argv[2])
    if dimensions:
        vectors(Path(sys.argv[1]), dimensions)
    else:
        documents(Path(sys.argv[1]))
