"""Pictures are SVG that can stand on one page together and take its colours."""

import re
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest

from cptuning.reporting.figures import (
    PAGE,
    confusion_svg,
    curve_png,
    curve_svg,
    embedding_svg,
    reliability_svg,
)
from cptuning.reporting.learning_curve import CurvePoint
from cptuning.reporting.metrics import ConfusionMatrix, ReliabilityBin


def confusion(*classes):
    return ConfusionMatrix.of(list(classes), list(classes))


PICTURES = {
    "confusion": lambda: confusion_svg(confusion("a", "b")),
    "reliability": lambda: reliability_svg([ReliabilityBin(3, 0.5, 0.4)]),
    "embeddings": lambda: embedding_svg(
        np.zeros((3, 2)), np.array([0, 1, -1]), np.array([True, False, False])
    ),
    "curve": lambda: curve_svg([CurvePoint(2, [0.5]), CurvePoint(4, [0.6, 0.8])], majority=0.5),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_well_formed_and_takes_the_pages_colours_and_width(name):
    svg = PICTURES[name]()
    root = ET.fromstring(svg)
    assert root.get("viewBox")
    assert root.get("width") is None
    assert "var(--ink)" in svg
    assert PAGE.ink not in svg
    assert "font-family" not in svg


def test_names_inside_pictures_do_not_clash_on_one_page():
    ids = [set(re.findall(r'\bid="([^"]+)"', PICTURES[name]())) for name in PICTURES]
    assert all(ids)
    assert len(set().union(*ids)) == sum(map(len, ids))


@pytest.mark.parametrize("name", PICTURES)
def test_every_reference_inside_a_picture_has_its_target(name):
    svg = PICTURES[name]()
    wanted = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
    assert wanted <= set(re.findall(r'\bid="([^"]+)"', svg))


@pytest.mark.parametrize(
    "label", ["<script>alert(1)</script>", "$\\frac{1$", 'id="x" url(#y)', "日本語", "_hidden"]
)
def test_any_class_name_is_shown_as_it_is(label):
    texts = {text.text for text in ET.fromstring(confusion_svg(confusion(label, "b"))).iter()}
    shown = label if len(label) <= 18 else label[:17] + "…"
    assert shown in texts


def test_a_picture_of_the_same_figures_is_the_same():
    assert PICTURES["confusion"]() == PICTURES["confusion"]()


def test_many_classes_are_drawn_without_numbers_and_very_many_without_names():
    def texts(n):
        svg = confusion_svg(confusion(*(f"class {i}" for i in range(n))))
        return [e.text for e in ET.fromstring(svg).iter() if e.tag.endswith("}text")]

    assert "1" in texts(3)
    assert "1" not in texts(20)
    assert "class 7" in texts(20)
    assert texts(60) == ["answer", "true class"]


def test_a_png_is_a_png():
    png = curve_png([CurvePoint(2, [0.5]), CurvePoint(4, [0.6])], majority=0.5)
    assert png.startswith(b"\x89PNG\r\n")


def test_threads_that_draw_at_once_draw_the_same_and_leave_matplotlib_as_it_was():
    matrix = confusion("$5 off$", "b")
    alone, settings = confusion_svg(matrix), dict(matplotlib.rcParams)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: confusion_svg(matrix), range(24))) == {alone}
    assert dict(matplotlib.rcParams) == settings
