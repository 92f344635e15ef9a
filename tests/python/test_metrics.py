"""Metrics against scikit-learn, pycocotools, and independent versions of what published scripts compute."""

import collections
import math
import re
import string

import numpy as np
import pytest
import sklearn.metrics as sk

import kilter
from conftest import DATA
from kilter import metrics

RNG = np.random.default_rng(7)


def judged(metric, outputs, labels, batch=7):
    """The result over batches of this size; a list of outputs is one for each output of the model."""
    several = outputs if isinstance(outputs, list) else [outputs]
    for begin in range(0, len(labels), batch):
        metric.update([output[begin : begin + batch] for output in several], labels[begin : begin + batch])
    return metric.result()


def test_every_metric_has_a_name():
    assert {"topk", "Accuracy", "F1", "COCOmAP", "SquadF1", "BLEU"} <= set(metrics.names())
    for name in metrics.names():
        assert isinstance(getattr(metrics, name)(), metrics.Metric)
    with pytest.raises(AttributeError, match="topk"):
        metrics.nothing  # noqa: B018
    with pytest.raises(kilter.Error, match="did you mean 'k'"):
        metrics.topk(kk=1)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_topk(k):
    scores = RNG.normal(size=(200, 10)).astype(np.float32)
    labels = RNG.integers(0, 10, 200)
    metric = metrics.topk(k=k)
    expected = sk.top_k_accuracy_score(labels, scores, k=k, labels=range(10))
    assert judged(metric, scores, labels) == pytest.approx(expected, abs=1e-12)
    assert np.mean(metric.per_sample) == pytest.approx(expected, abs=1e-12)
    assert metric.bounds == (0, 1)


def test_accuracy_of_classes_and_of_labels():
    scores = RNG.normal(size=(100, 4)).astype(np.float32)
    labels = RNG.integers(0, 4, 100)
    assert judged(metrics.Accuracy(), scores, labels) == sk.accuracy_score(labels, scores.argmax(1))
    several = RNG.integers(0, 2, (100, 4))
    said = RNG.uniform(size=(100, 4)).astype(np.float32)
    assert judged(metrics.Accuracy(), said, several) == pytest.approx(
        1 - sk.hamming_loss(several, said >= 0.5), abs=1e-12
    )
    assert judged(metrics.Accuracy(exact_match=True), said, several) == sk.accuracy_score(
        several, said >= 0.5
    )


@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
def test_f1_over_classes(average):
    scores = RNG.normal(size=(100, 5)).astype(np.float32)
    labels = RNG.integers(0, 4, 100)  # class 4 is said, but never true
    expected = sk.f1_score(labels, scores.argmax(1), average=average)
    assert judged(metrics.F1(average=average), scores, labels) == pytest.approx(expected, abs=1e-12)
    several = RNG.integers(0, 2, (100, 5))
    expected = sk.f1_score(several, scores >= 0.5, average=average)
    assert judged(metrics.F1(average=average), scores, several) == pytest.approx(expected, abs=1e-12)


def test_f1_of_one_class():
    scores = RNG.uniform(size=100).astype(np.float32)
    labels = RNG.integers(0, 2, 100)
    expected = sk.f1_score(labels, scores >= 0.5)
    assert judged(metrics.F1(), scores, labels) == pytest.approx(expected, abs=1e-12)
    expected = sk.f1_score(labels, scores >= 0.3, pos_label=0)
    assert judged(metrics.F1(threshold=0.3, pos_label=0), scores, labels) == pytest.approx(expected)
    with pytest.raises(kilter.Error, match="macro"):
        judged(metrics.F1(), RNG.normal(size=(30, 5)), RNG.integers(0, 5, 30))


def test_bag_f1_is_the_overlap_of_each_batch():
    said = np.array([1, 2, 3, 1, 5, 5])
    labels = np.array([1, 1, 2, 5, 6, 5])

    def overlap(a, b):
        same = sum((collections.Counter(a.tolist()) & collections.Counter(b.tolist())).values())
        return 2 * same / (len(a) + len(b))

    expected = (overlap(said[:4], labels[:4]) + overlap(said[4:], labels[4:])) / 2
    assert judged(metrics.bag_f1(), said, labels, batch=4) == pytest.approx(expected)


def test_roc_with_ties_and_two_columns():
    scores = RNG.integers(0, 20, 300).astype(np.float32)
    labels = RNG.integers(0, 2, 300)
    expected = sk.roc_auc_score(labels, scores)
    assert judged(metrics.ROC(), scores, labels) == pytest.approx(expected, abs=1e-12)
    logits = np.stack([-scores, scores], 1)
    assert judged(metrics.ROC(), logits, labels) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(kilter.Error, match="both classes"):
        judged(metrics.ROC(), scores, np.zeros(300, np.int64))


def test_glue():
    logits = RNG.normal(size=(100, 2)).astype(np.float32)
    labels = RNG.integers(0, 2, 100)
    said = logits.argmax(1)
    accuracy, f1 = sk.accuracy_score(labels, said), sk.f1_score(labels, said)
    assert judged(metrics.GLUE(task="mrpc"), logits, labels) == pytest.approx(f1)
    assert judged(metrics.GLUE(task="mrpc", score="accuracy"), logits, labels) == pytest.approx(accuracy)
    assert judged(metrics.GLUE(task="mrpc", score="mean"), logits, labels) == pytest.approx(
        (accuracy + f1) / 2
    )
    assert judged(metrics.GLUE(task="rte"), logits, labels) == pytest.approx(accuracy)
    assert judged(metrics.GLUE(task="cola"), logits, labels) == pytest.approx(
        sk.matthews_corrcoef(labels, said)
    )
    scores = RNG.integers(0, 6, (100, 1)).astype(np.float32)
    truth = scores[:, 0] + RNG.integers(-2, 3, 100)

    def ranks(values):
        return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])

    pearson = np.corrcoef(scores[:, 0], truth)[0, 1]
    spearman = np.corrcoef(ranks(scores[:, 0]), ranks(truth))[0, 1]
    assert judged(metrics.GLUE(task="sts-b"), scores, truth) == pytest.approx((pearson + spearman) / 2)


def test_differences_and_loss():
    said = RNG.normal(size=(50, 3, 2)).astype(np.float32)
    truth = RNG.normal(size=(50, 3, 2)).astype(np.float32)
    flat = truth.reshape(50, -1), said.reshape(50, -1)
    assert judged(metrics.MSE(), said, truth) == pytest.approx(sk.mean_squared_error(*flat), rel=1e-6)
    assert judged(metrics.MAE(), said, truth) == pytest.approx(sk.mean_absolute_error(*flat), rel=1e-6)
    assert judged(metrics.RMSE(), said, truth) == pytest.approx(
        math.sqrt(sk.mean_squared_error(*flat)), rel=1e-6
    )
    assert not metrics.MSE().higher_is_better
    reference = [{"reference": entry} for entry in truth]
    assert judged(metrics.MAE(compare_label=False), said, reference) == pytest.approx(
        sk.mean_absolute_error(*flat), rel=1e-6
    )
    losses = RNG.uniform(size=50)
    assert judged(metrics.Loss(), losses, np.zeros(50)) == pytest.approx(losses.mean())


def test_miou():
    classes = 6
    truth = RNG.integers(0, classes - 1, (9, 8, 7))
    truth[:, 0] = 255
    scores = RNG.normal(size=(9, classes, 8, 7)).astype(np.float32)
    said = scores.argmax(1)
    seen = truth != 255
    expected = sk.jaccard_score(truth[seen], said[seen], average="macro")
    assert judged(metrics.mIOU(num_classes=classes), scores, truth) == pytest.approx(expected)
    assert judged(metrics.mIOU(num_classes=classes), said, truth) == pytest.approx(expected)
    last = np.ascontiguousarray(scores.transpose(0, 2, 3, 1))
    assert judged(metrics.mIOU(num_classes=classes), last, truth) == pytest.approx(expected)


# Detection.


def scene(images=40, classes=4, detections=25):
    """Random images: crowds, odd areas, misplaced and superfluous detections, many equal scores."""
    rng = np.random.default_rng(3)
    labels, boxes, scores, ids = [], [], [], []
    for image in range(images):
        count = int(rng.integers(0, 9))
        corner = rng.integers(0, 400, (count, 2)) / 4
        size = rng.choice([20, 60, 300], (count, 1)) * rng.integers(2, 8, (count, 2)) / 4
        truth = np.concatenate([corner, corner + size], 1)
        kind = rng.integers(1, classes + 1, count)
        labels.append(
            {
                "boxes": truth.astype(np.float32),
                "classes": kind,
                "iscrowd": (rng.uniform(size=count) < 0.15).astype(np.int64),
                "area": (size.prod(1) * rng.choice([0.5, 0.75], count)).astype(np.float32),
                "image_id": np.int64(1000 - image),
                "image_size": np.array([500, 640]),
            }
        )
        found, marks, sorts = [], [], []
        for _ in range(detections):
            if count and rng.uniform() < 0.7:
                at = int(rng.integers(count))
                found.append(truth[at] + rng.integers(-12, 13, 4) / 4)
                sorts.append(kind[at] if rng.uniform() < 0.9 else rng.integers(1, classes + 2))
            else:
                place = rng.integers(0, 400, 2) / 4
                found.append(np.concatenate([place, place + rng.integers(1, 200, 2) / 4]))
                sorts.append(rng.integers(1, classes + 2))
            marks.append(rng.integers(0, 40) / 40)
        boxes.append(found)
        scores.append(marks)
        ids.append(sorts)
    return (
        labels,
        np.array(boxes, np.float32),
        np.array(scores, np.float32),
        np.array(ids, np.float32),
    )


def xywh(box):
    y0, x0, y1, x1 = (float(v) for v in box)
    return [x0, y0, x1 - x0, y1 - y0]


@pytest.fixture(scope="module")
def coco_stats():
    """What pycocotools says of the scene."""
    coco = pytest.importorskip("pycocotools.coco")
    from pycocotools.cocoeval import COCOeval

    labels, boxes, scores, ids = scene()
    truth, found = coco.COCO(), []
    annotations = []
    for label, b, s, k in zip(labels, boxes, scores, ids):
        image = int(label["image_id"])
        for box, kind, crowd, area in zip(label["boxes"], label["classes"], label["iscrowd"], label["area"]):
            entry = {"image_id": image, "category_id": int(kind), "iscrowd": int(crowd)}
            annotations.append(entry | {"bbox": xywh(box), "area": float(area), "id": len(annotations) + 1})
        found += [
            {"image_id": image, "category_id": int(kind), "bbox": xywh(box), "score": float(score)}
            for box, score, kind in zip(b, s, k)
            if kind <= 4
        ]
    truth.dataset = {
        "images": [{"id": int(label["image_id"])} for label in labels],
        "annotations": annotations,
        "categories": [{"id": i} for i in range(1, 5)],
        "info": {},
    }
    truth.createIndex()
    evaluation = COCOeval(truth, truth.loadRes(found), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats


COCO_KEYS = [
    "DetectionBoxes_Precision/mAP",
    "DetectionBoxes_Precision/mAP@.50IOU",
    "DetectionBoxes_Precision/mAP@.75IOU",
    "DetectionBoxes_Precision/mAP (small)",
    "DetectionBoxes_Precision/mAP (medium)",
    "DetectionBoxes_Precision/mAP (large)",
    "DetectionBoxes_Recall/AR@1",
    "DetectionBoxes_Recall/AR@10",
    "DetectionBoxes_Recall/AR@100",
    "DetectionBoxes_Recall/AR@100 (small)",
    "DetectionBoxes_Recall/AR@100 (medium)",
    "DetectionBoxes_Recall/AR@100 (large)",
]


@pytest.mark.parametrize("index", range(len(COCO_KEYS)), ids=COCO_KEYS)
def test_coco_map_is_that_of_pycocotools(coco_stats, index):
    labels, boxes, scores, ids = scene()
    metric = metrics.COCOmAP(map_key=COCO_KEYS[index])
    assert 0.01 < coco_stats[index] < 0.99
    assert judged(metric, [boxes, scores, ids], labels) == pytest.approx(coco_stats[index], abs=1e-12)


def test_boxes_may_be_fractions_and_in_other_orders(coco_stats):
    labels, boxes, scores, ids = scene()
    fractions = boxes.astype(np.float64) / [500, 640, 500, 640]
    assert judged(metrics.COCOmAP(), [fractions, scores, ids], labels) == pytest.approx(
        coco_stats[0], abs=1e-3
    )
    counts = np.full(len(labels), boxes.shape[1])
    assert judged(metrics.COCOmAP(), [counts, boxes, scores, ids], labels) == pytest.approx(coco_stats[0])
    swapped = boxes[..., [1, 0, 3, 2]]
    mapping = {"boxes": 2, "scores": 0, "classes": 1}
    metric = metrics.COCOmAP(box_format="xyxy", output_index_mapping=mapping)
    assert judged(metric, [scores, ids, swapped], labels) == pytest.approx(coco_stats[0])


def test_map_thresholds_and_points(coco_stats):
    labels, boxes, scores, ids = scene()
    metric = metrics.mAP(iou_thrs="0.5:0.05:0.95", map_points=101)
    assert judged(metric, [boxes, scores, ids], labels) == pytest.approx(coco_stats[0], abs=1e-12)
    metric = metrics.mAP(iou_thrs=0.5, map_points=101)
    assert judged(metric, [boxes, scores, ids], labels) == pytest.approx(coco_stats[1], abs=1e-12)
    with pytest.raises(kilter.Error, match="0, 11 or 101"):
        metrics.mAP(map_points=7)


def voc_map(labels, boxes, scores, ids, points):
    """The rules of the PASCAL VOC development kit, on continuous coordinates."""

    def overlap(a, b):
        height = min(a[2], b[2]) - max(a[0], b[0])
        width = min(a[3], b[3]) - max(a[1], b[1])
        if height <= 0 or width <= 0:
            return 0.0
        both = height * width
        return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)

    results = []
    for kind in sorted({int(k) for label in labels for k in label["classes"]}):
        positives, rows = 0, []
        used = [[False] * len(label["classes"]) for label in labels]
        for i, label in enumerate(labels):
            positives += sum(k == kind and not d for k, d in zip(label["classes"], label["difficult"]))
            rows += [(-s, i, b) for b, s, k in zip(boxes[i], scores[i], ids[i]) if k == kind]
        rows.sort(key=lambda row: row[0])
        right = wrong = 0
        recall, precision = [], []
        for _, i, box in rows:
            label = labels[i]
            candidates = [
                (overlap(box.astype(float), t.astype(float)), j)
                for j, t in enumerate(label["boxes"])
                if label["classes"][j] == kind
            ]
            best, at = max(candidates, default=(0, -1))
            if best >= 0.5:
                if not label["difficult"][at]:
                    if used[i][at]:
                        wrong += 1
                    else:
                        used[i][at] = True
                        right += 1
            else:
                wrong += 1
            recall.append(right / positives)
            precision.append(right / max(right + wrong, 1e-300))
        if points:
            best_at = [
                max([p for r, p in zip(recall, precision) if r >= t], default=0)
                for t in np.linspace(0, 1, points)
            ]
            results.append(np.mean(best_at))
        else:
            envelope = np.maximum.accumulate(precision[::-1])[::-1]
            results.append(np.sum(np.diff([0, *recall]) * envelope))
    return np.mean(results)


@pytest.mark.parametrize("points", [0, 11])
def test_voc_map(points):
    labels, boxes, scores, ids = scene()
    scores = scores + RNG.uniform(0, 0.01, scores.shape).astype(np.float32)  # no ties between images
    for label in labels:
        label["difficult"] = label.pop("iscrowd")
        label.pop("image_id")
    expected = voc_map(labels, boxes, scores, ids, points)
    metric = metrics.VOCmAP(map_points=points)
    assert judged(metric, [boxes, scores, ids], labels) == pytest.approx(expected, abs=1e-9)


def test_class_names_come_from_a_file(tmp_path):
    (tmp_path / "names.yaml").write_text("cat: 3\ndog: 5\n")
    box = np.array([[[0, 0, 10, 10]]], np.float32)
    for entries in ({"classes": ["dog"]}, {"class_names": ["dog"]}, {"classes": [1], "class_names": ["dog"]}):
        metric = metrics.mAP(anno_path=str(tmp_path / "names.yaml"))
        metric.update([box, np.ones((1, 1)), np.array([[5]])], [{"boxes": box[0], **entries}])
        assert metric.result() == pytest.approx(1)
    with pytest.raises(kilter.Error, match="anno_path"):
        metrics.mAP().update(
            [box, np.ones((1, 1)), np.array([[5]])], [{"boxes": box[0], "class_names": ["dog"]}]
        )


# Text.


def official_words(text):
    """Words of an answer by the rules of SQuAD v1.1."""
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def official_f1(said, truth):
    a, b = official_words(said), official_words(truth)
    same = sum((collections.Counter(a) & collections.Counter(b)).values())
    return 0 if same == 0 else 2 * (same / len(a)) * (same / len(b)) / (same / len(a) + same / len(b))


ANSWERS = [
    ("The Denver Broncos", ["Denver Broncos", "the broncos of Denver!"]),
    ("an  apple, a day", ["apple day", "apples"]),
    ("café THE€ Ünïcode the_end", ["Café ünïcode the_end", "x"]),
    ("1,000 \u2013 2,000", ["1000\u20132000"]),
    ("theatre", ["the atre", "thea tre"]),
    ("", ["nothing"]),
    ("a", ["the"]),
    ("日本 the 東京", ["日本 東京"]),
]


@pytest.mark.parametrize("score", ["f1", "em"])
def test_squad_compares_answers_as_the_official_rules(score):
    said = [entry[0] for entry in ANSWERS]
    labels = [{"id": str(i), "answers": entry[1]} for i, entry in enumerate(ANSWERS)]
    if score == "f1":
        each = [max(official_f1(a, b) for b in truths) for a, truths in ANSWERS]
    else:
        each = [max(official_words(a) == official_words(b) for b in truths) for a, truths in ANSWERS]
    metric = metrics.SquadF1(score=score)
    assert judged(metric, np.array(said, object), labels) == pytest.approx(100 * np.mean(each))


def squad_answer(windows, best=20, longest=30):
    """An independent version of BERT's way from logits to an answer."""
    candidates = []
    for start, end, label in windows:
        starts = sorted(range(len(start)), key=lambda i: -start[i])[:best]
        ends = sorted(range(len(end)), key=lambda i: -end[i])[:best]
        for s in starts:
            for e in ends:
                inside = label["token_start"][s] >= 0 and label["token_start"][e] >= 0
                if inside and label["max_context"][s] and s <= e < s + longest:
                    raw = label["context"].encode()[label["token_start"][s] : label["token_end"][e]]
                    candidates.append((start[s] + end[e], raw.decode()))
    return max(candidates, key=lambda c: c[0])[1] if candidates else "empty"


def test_squad_makes_answers_from_logits_of_all_windows():
    rng = np.random.default_rng(5)
    tokens, windows = 60, []
    for question in range(12):
        words = [rng.choice(["alpha", "bêta", "gamma,", "the", "delta"]) for _ in range(90)]
        context = " ".join(words)
        places, at = [], 0
        for word in words:
            places.append((at, at + len(word.encode())))
            at += len(word.encode()) + 1
        for first in (0, 40):
            begin, end = np.full(tokens, -1), np.full(tokens, -1)
            most = rng.uniform(size=tokens) < 0.6
            for i, (a, b) in enumerate(places[first : first + 48]):
                begin[10 + i], end[10 + i] = a, b
            label = {
                "id": str(question),
                "answers": [" ".join(words[i : i + 4]) for i in rng.integers(0, 80, 3)],
                "context": context,
                "token_start": begin,
                "token_end": end,
                "max_context": most,
            }
            logits = rng.integers(-8, 9, (2, tokens)).astype(np.float32)
            windows.append((logits[0], logits[1], label))
    expected = []
    for question in range(12):
        mine = [window for window in windows if window[2]["id"] == str(question)]
        # The answers of a question are the same in all its windows.
        for window in mine:
            window[2]["answers"] = mine[0][2]["answers"]
        said = squad_answer(mine)
        expected.append(max(official_f1(said, truth) for truth in mine[0][2]["answers"]))
    assert len(set(expected)) > 3
    start = np.stack([window[0] for window in windows])
    end = np.stack([window[1] for window in windows])
    labels = [window[2] for window in windows]
    assert judged(metrics.SquadF1(), [start, end], labels) == pytest.approx(100 * np.mean(expected))
    both = np.stack([start, end], 2)
    assert judged(metrics.SquadF1(), both, labels) == pytest.approx(100 * np.mean(expected))


def test_bleu_of_a_published_example():
    # The example of the documentation of NLTK's corpus_bleu, which gives 0.5920.
    hypotheses = [
        "It is a guide to action which ensures that the military always obeys the commands of the party",
        "he read the book because he was interested in world history",
    ]
    references = [
        [
            "It is a guide to action that ensures that the military will forever heed Party commands",
            "It is the guiding principle which guarantees the military forces always being under the command"
            " of the Party",
            "It is the practical guide for the army always to heed the directions of the party",
        ],
        ["he was interested in world history because he read the book"],
    ]
    assert judged(metrics.BLEU(), np.array(hypotheses, object), references) == pytest.approx(
        59.20778868801042, abs=1e-9
    )


def test_bleu_separates_punctuation_and_symbols():
    import unicodedata

    def words(text):
        def sub(pattern, put, text):
            marked = "".join(
                "p" if unicodedata.category(c)[0] == "P" else "d" if c.isdecimal() else "x" for c in text
            )
            result, at = "", 0
            while at < len(text):
                if at + 1 < len(text) and pattern(marked[at], marked[at + 1]):
                    result += put(text[at], text[at + 1])
                    at += 2
                else:
                    result += text[at]
                    at += 1
            return result

        text = sub(lambda a, b: a != "d" and b == "p", lambda a, b: f"{a} {b} ", text)
        text = sub(lambda a, b: a == "p" and b != "d", lambda a, b: f" {a} {b}", text)
        text = "".join(f" {c} " if unicodedata.category(c)[0] == "S" else c for c in text)
        return text.split()

    hypotheses = [
        "It cost $1,000.50 (net), didn't it?",
        "Größe: 3\u00d74 «gut» \u2013 ja!",
        "one two three four five",
    ]
    references = [
        "It cost $ 1,000.50 ( net ), did it?",
        "Größe : 3 \u00d7 4 « gut » \u2013 nein !",
        "one two three four six",
    ]
    matches, possible = [0] * 4, [0] * 4
    length = wanted = 0
    for said, truth in zip(hypotheses, references):
        a, b = words(said), words(truth)
        length, wanted = length + len(a), wanted + len(b)
        for n in range(4):
            grams = [collections.Counter(tuple(w[i : i + n + 1]) for i in range(len(w) - n)) for w in (a, b)]
            matches[n] += sum((grams[0] & grams[1]).values())
            possible[n] += max(0, len(a) - n)
    brevity = min(1, math.exp(1 - wanted / length))
    expected = 100 * brevity * math.exp(sum(math.log(m / p) for m, p in zip(matches, possible)) / 4)
    result = judged(metrics.BLEU(), np.array(hypotheses, object), references)
    assert result == pytest.approx(expected, abs=1e-9)


def test_squad_on_windows_of_the_dataset():
    """The dataset's windows and the metric fit: logits that point at the answers are right nearly always."""
    path, vocabulary = DATA / "nlp" / "xquad.en.json", DATA / "nlp" / "bert-base-uncased-vocab.txt"
    if not path.exists():
        pytest.skip(f"no questions in {path}")
    dataset = {"SQuAD": {"root": str(path), "vocab_file": str(vocabulary)}}
    metric = metrics.SquadF1()
    for _, labels in kilter.data.Loader(dataset, batch_size=16, limit=320):
        logits = np.zeros((2, len(labels), 384), np.float32)
        for i, label in enumerate(labels):
            text, answer = str(label["context"]).encode(), str(label["answers"][0]).encode()
            begin = text.find(answer)
            inside = label["token_start"] >= 0
            logits[0, i] = np.where(inside & (label["token_start"] == begin), 9, logits[0, i])
            logits[1, i] = np.where(inside & (label["token_end"] == begin + len(answer)), 9, logits[1, i])
        metric.update([logits[0], logits[1]], labels)
    assert metric.result() > 99
