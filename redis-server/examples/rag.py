"""Finds the passages of Markdown files that answer questions: retrieval for a language model, with embeddings that a package ships.

    pip install langchain-redis wordllama
    python rag.py FOLDER QUESTION…

REDIS_URL names the server, by default redis://127.0.0.1:6379. The passages stay there. A second run replaces them.
"""

import argparse
import os
import sys
from pathlib import Path

import wordllama
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_redis import RedisConfig, RedisVectorStore


class Model(Embeddings):
    """The model of 256 dimensions in WordLlama's package."""

    def __init__(self):
        # The package holds the tokenizer's file, but looks for it in another folder.
        self.model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)

    def embed_documents(self, texts):
        return self.model.embed(texts, norm=True).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def passages(folder):
    """Each paragraph, with the heading above it."""
    for file in sorted(Path(folder).rglob("*.md")):
        heading = file.stem
        for number, paragraph in enumerate(file.read_text(encoding="utf-8").split("\n\n")):
            if paragraph.startswith("#"):
                heading = paragraph.splitlines()[0].lstrip("# ")
            if len(paragraph) > 80:
                source = str(file.relative_to(folder))
                metadata = {"source": source, "heading": heading}
                yield f"{source}:{number}", Document(page_content=f"{heading}\n{paragraph}", metadata=metadata)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="Markdown files are read from here and below")
    parser.add_argument("questions", nargs="+", metavar="question")
    arguments = parser.parse_args()
    found = list(passages(arguments.folder))
    if not found:
        sys.exit(f"{arguments.folder}: no Markdown files with passages")
    config = RedisConfig(
        index_name="manual",
        redis_url=os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
        metadata_schema=[{"name": "source", "type": "tag"}, {"name": "heading", "type": "text"}],
    )
    store = RedisVectorStore(Model(), config)
    keys, documents = zip(*found)
    store.add_documents(list(documents), keys=list(keys))
    for question in arguments.questions:
        print(f"# {question}")
        for passage, distance in store.similarity_search_with_score(question, k=3):
            print(f"{distance:.3f} {passage.metadata['source']}: {passage.page_content[:200]!r}")


if __name__ == "__main__":
    main()
