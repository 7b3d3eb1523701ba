"""Random collections of documents, and slow, obvious references."""

import math
from collections import Counter
from random import Random

from hypothesis import strategies as st

from podium.features import Index

WORDS = ["a", "b", "c", "dd", "runs", "running", "é", "東京", "x1"]
RANDOM = st.integers(0, 2**32 - 1).map(Random)  # few examples are enough if each is full


def random_text(random):
    return " ".join(random.choices(WORDS, k=random.randint(0, 8)))


TEXTS = RANDOM.map(random_text)


@st.composite
def documents(draw, min_size=0, max_size=12):
    random, n = draw(RANDOM), draw(st.integers(min_size, max_size))
    rows = [
        {
            "id": f"d{k}",
            "title": random_text(random),
            "body": random_text(random),
            "votes": random.choice([None, k, -k]),
        }
        for k in range(n)
    ]
    random.shuffle(rows)
    return rows


@st.composite
def some_ids(draw, rows):
    """Any of the documents' ids."""
    random = draw(RANDOM)
    return set(random.sample([row["id"] for row in rows], random.randint(0, len(rows))))


def built(rows, **options):
    return Index.build(rows, fields={"title": "english", "body": "english"}, attributes=["votes"], **options)


def bm25_scores(index, texts_of, query, names, k1=1.2, b=0.75):
    """The score of each document, from the definition; `texts_of` maps ids to the texts of fields."""
    analyzer = index.fields[names[0]].analyzer
    words = {key: [term for name in names for term in analyzer.terms(texts[name])] for key, texts in texts_of.items()}
    n_documents, total = len(words), sum(map(len, words.values()))
    scores = {}
    for key, terms in words.items():
        counts, score = Counter(terms), 0.0
        for term in dict.fromkeys(analyzer.terms(query)):
            if counts[term]:
                n = sum(term in others for others in words.values())
                idf = math.log(1 + (n_documents - n + 0.5) / (n + 0.5))
                norm = k1 * (1.0 - b + b * len(terms) / (total / n_documents))
                score += idf * (counts[term] / (counts[term] + norm))
        if score:
            scores[key] = score
    return scores
