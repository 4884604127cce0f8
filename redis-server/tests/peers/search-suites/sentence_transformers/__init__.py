"""Stands for the package of this name, which fetches models: texts with equal words are near each other, and that is all it knows."""

import hashlib
import re

import numpy

DIMENSIONS = {"sentence-transformers/all-MiniLM-L6-v2": 384, "all-MiniLM-L6-v2": 384}


def numbers(word, count):
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return numpy.random.default_rng(seed).standard_normal(count)


class SentenceTransformer:
    def __init__(self, model="", **_):
        self.dimensions = DIMENSIONS.get(model, 768)

    def encode(self, texts, **_):
        if isinstance(texts, str):
            return self.encode([texts])[0]
        return numpy.array([self.vector(text) for text in texts], dtype=numpy.float32)

    def vector(self, text):
        words = re.findall(r"\w+", str(text).lower()) or [""]
        total = sum(numbers(word, self.dimensions) for word in words)
        return total / numpy.linalg.norm(total)

    def get_sentence_embedding_dimension(self):
        return self.dimensions


class CrossEncoder:
    def __init__(self, *_, **__):
        self.encoder = SentenceTransformer()

    def predict(self, pairs, **_):
        return [float(numpy.dot(*self.encoder.encode(list(pair)))) for pair in pairs]
