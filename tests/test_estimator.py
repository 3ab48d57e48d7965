"""The classifier as a user and as scikit-learn see it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cptuning import CPTuningClassifier, list_methods, load, make_classifier
from cptuning.errors import CPTuningError
from cptuning.inference.closed_form import SHRINKAGES
from cptuning.methods.cp_tuning_settings import PRESETS
from cptuning.registry import classifier_class
from cptuning.training import Callback
from tests.methods.conftest import BAD, GOOD
from tests.tiny import save_tiny

TEXTS = [*GOOD, *BAD]
LABELS = ["good"] * len(GOOD) + ["bad"] * len(BAD)
PAIRS = [(a, b) for a in GOOD[:3] for b in GOOD[3:5]] + [(a, b) for a in GOOD[:3] for b in BAD[3:5]]
PAIR_LABELS = [1] * 6 + [0] * 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(save_tiny("bert", tmp_path_factory.mktemp("tiny") / "bert"))


@pytest.fixture
def classifier(folder):
    return CPTuningClassifier(
        folder, steps=3, evaluate_every=1, batch_size=6, validation="none", verbose=False
    )


@pytest.fixture
def fitted(classifier):
    return classifier.fit(TEXTS, LABELS)


def test_texts_go_in_and_labels_come_out(fitted):
    found = fitted.predict(TEXTS)
    assert found.shape == (12,)
    assert set(found) <= {"good", "bad"}
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert fitted.n_features_in_ == 1


def test_a_third_class_has_the_settings_of_many_classes(folder):
    few = CPTuningClassifier(folder, steps=0, validation="none", verbose=False)
    two = few.fit(TEXTS, LABELS).settings_
    three = few.fit([*TEXTS, "the red train", "a red train"], [*LABELS, "train", "train"]).settings_
    assert [two, three] == [
        replace(PRESETS["default"][kind], steps=0, epochs=0) for kind in ("single", "many")
    ]


def test_pairs_go_in_and_labels_of_their_own_type_come_out(classifier):
    fitted = classifier.fit(PAIRS, PAIR_LABELS)
    assert fitted.predict(PAIRS).dtype.kind == "i"
    assert fitted.n_features_in_ == 2
    with pytest.raises(CPTuningError, match="pair"):
        fitted.predict(TEXTS)


def test_embeddings_are_unit_vectors_in_float32(fitted):
    embeddings = fitted.transform(TEXTS)
    assert embeddings.dtype == np.float32
    assert np.linalg.norm(embeddings, axis=1) == pytest.approx(np.ones(12), abs=1e-5)


def test_probabilities_sum_to_one_and_agree_with_the_labels(fitted):
    probabilities = fitted.predict_proba(TEXTS)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(12))
    assert (fitted.classes_[probabilities.argmax(axis=1)] == fitted.predict(TEXTS)).all()


def test_the_score_is_the_share_of_right_labels(fitted):
    assert fitted.score(TEXTS, LABELS) == np.mean(fitted.predict(TEXTS) == np.array(LABELS))
    assert fitted.score(TEXTS, LABELS, sample_weight=[1] + [0] * 11) in (0.0, 1.0)


def test_an_explanation_is_the_nearest_training_examples(fitted):
    answers = fitted.predict(TEXTS)
    for text, label, answer, evidence in zip(
        TEXTS, LABELS, answers, fitted.explain(TEXTS, k=3), strict=True
    ):
        similarities = [e.similarity for e in evidence]
        assert similarities == sorted(similarities, reverse=True)
        assert {e.label for e in evidence} == {answer}
        if answer == label:  # Of its own class nothing is nearer than itself.
            assert similarities[0] == pytest.approx(1.0, abs=1e-5)
            assert evidence[0].text == text
    assert (answers == np.array(LABELS)).any()


def test_a_new_class_is_known_at_once_and_old_embeddings_stay(fitted):
    before = fitted.transform(TEXTS)
    fitted.add_examples(["the red train leaves before noon"], ["travel"])
    assert fitted.classes_.tolist() == ["bad", "good", "travel"]
    assert fitted.predict(["the red train leaves before noon"]).tolist() == ["travel"]
    np.testing.assert_array_equal(fitted.transform(TEXTS), before)


def test_far_texts_are_unknown_only_when_asked(classifier):
    classifier.set_params(unknown_threshold=1.1).fit(TEXTS, LABELS)
    assert set(classifier.predict(TEXTS)) == {"unknown"}
    classifier.set_params(unknown_threshold=-1.0).fit(TEXTS, LABELS)
    assert "unknown" not in set(classifier.predict(TEXTS))


def test_the_automatic_threshold_refuses_one_in_twenty_held_out_examples(folder):
    classifier = CPTuningClassifier(
        folder, steps=1, batch_size=6, unknown_threshold="auto", verbose=False
    ).fit(TEXTS, LABELS, TEXTS, LABELS)
    assert -1 < classifier.predictor_.unknown_threshold <= 1.0001
    with pytest.raises(CPTuningError, match="needs held-out examples"):
        classifier.set_params(validation="none").fit(TEXTS, LABELS)


def test_probabilities_are_calibrated_on_dev_or_on_cross_fitted_answers(folder):
    preset = CPTuningClassifier(folder, steps=2, batch_size=6, validation="none", verbose=False)
    fixed = preset.fit(TEXTS, LABELS).predictor_.temperature
    assert fixed == preset.settings_.temperature
    crossed = clone(preset).set_params(validation="cross-fit").fit(TEXTS, LABELS)
    with_dev = clone(preset).fit(TEXTS, LABELS, X_dev=TEXTS, y_dev=LABELS)
    assert crossed.predictor_.temperature != fixed
    assert with_dev.predictor_.temperature != crossed.predictor_.temperature
    assert 0 <= crossed.held_out_score_ <= 1
    assert crossed.training_["validation"] == "cross-fit"


def test_the_same_seed_gives_bitwise_the_same_model(folder):
    runs = [
        CPTuningClassifier(folder, random_state=seed, steps=4, validation="none", verbose=False)
        .fit(TEXTS, LABELS)
        .transform(TEXTS)
        for seed in (7, 7, 8)
    ]
    assert (runs[0] == runs[1]).all()
    assert not (runs[0] == runs[2]).all()


def test_transfer_starts_from_another_models_weights(folder, fitted, tmp_path):
    again = clone(fitted).set_params(steps=0, centred=False)
    fresh = again.fit(TEXTS, LABELS).transform(TEXTS)
    moved = again.fit(TEXTS, LABELS, init_from=fitted).transform(TEXTS)
    assert np.abs(moved - fresh).max() > 1e-4
    source = fitted.transform(TEXTS)
    again.set_params(steps=2, learning_rate=0.1).fit(TEXTS, LABELS, init_from=fitted)
    np.testing.assert_array_equal(fitted.transform(TEXTS), source)
    fitted.save(tmp_path / "model")
    from_disk = clone(fitted).set_params(steps=0, centred=False)
    from_disk.fit(TEXTS, LABELS, init_from=tmp_path / "model")
    np.testing.assert_array_equal(from_disk.transform(TEXTS), moved)


def test_unlabelled_text_changes_what_is_learned(classifier):
    plain = classifier.fit(TEXTS, LABELS).transform(TEXTS)
    with_more = classifier.fit(TEXTS, LABELS, unlabeled=["the parcel came late"]).transform(TEXTS)
    assert np.abs(plain - with_more).max() > 1e-6


def test_a_model_without_a_head_trains_without_the_masked_lm(tmp_path, caplog):
    from tests.tiny import save_headless

    folder = str(save_headless(tmp_path / "headless"))
    classifier = CPTuningClassifier(folder, steps=2, validation="none", verbose=False)
    assert classifier.fit(TEXTS, LABELS).predict(TEXTS).shape == (12,)
    assert "no masked-LM head" in caplog.text


# Without training: linear discriminant analysis


@pytest.fixture
def instant(folder):
    return CPTuningClassifier(folder, steps=0, inference="lda", centred=False, verbose=False)


@pytest.mark.parametrize("validation", ["cross-fit", "none"])
def test_without_training_held_out_answers_are_those_of_refits_without_each_example(
    instant, validation
):
    texts, labels = [*TEXTS, "the red train"], [*LABELS, "alone"]
    instant.set_params(validation=validation, unknown_threshold="auto").fit(texts, labels)
    held_out = instant.held_out_
    assert instant.held_out_rows_.tolist() == list(range(12))
    for row, scores, familiarity in zip(
        range(12), held_out.scores, held_out.familiarity, strict=True
    ):
        others = [i for i in range(13) if i != row]
        refitted = clone(instant).set_params(unknown_threshold=None)
        refitted.fit([texts[i] for i in others], [labels[i] for i in others])
        # The shrinkage was chosen by others, and the temperature may be that of another one.
        predictor = refitted.predictor_
        analysis, embedding = predictor.support.analysis, predictor.transform([texts[row]])
        found = [analysis.discriminants(s).scores(embedding)[0] for s in SHRINKAGES]
        off = [np.abs(scores / np.ptp(scores) - each / np.ptp(each)).max() for each in found]
        assert min(off) < 1e-4
        nearest = refitted.explain([texts[row]], k=13)[0]
        others_too = [*nearest, *([nearest.against] if nearest.against else [])]
        assert familiarity == pytest.approx(max(e.similarity for e in others_too), abs=1e-5)
    assert instant.held_out_score_ == np.mean(held_out.scores.argmax(axis=1) == held_out.labels)
    assert instant.predictor_.temperature == held_out.temperature
    assert instant.predictor_.unknown_threshold == pytest.approx(
        np.quantile(held_out.familiarity, 0.05)
    )
    assert instant.training_["validation"] == "leave-one-out"


def test_discriminants_of_a_trained_model_are_cross_fitted_and_chosen_with_dev(instant):
    trained = clone(instant).set_params(steps=2, batch_size=6).fit(TEXTS, LABELS)
    assert trained.training_["validation"] == "cross-fit"
    unmeasured = clone(trained).set_params(validation="none").fit(TEXTS, LABELS)
    assert unmeasured.held_out_ is None
    with_dev = instant.fit(TEXTS, LABELS, TEXTS[:4], LABELS[:4])
    assert with_dev.training_["validation"] == "dev"
    assert len(with_dev.held_out_.labels) == 4


def test_without_training_each_text_is_read_once(instant, monkeypatch):
    from cptuning.backbone import TextEncoder

    read = []
    plain = TextEncoder.embed_encodings
    monkeypatch.setattr(
        TextEncoder,
        "embed_encodings",
        lambda self, texts: read.append(len(texts)) or plain(self, texts),
    )
    instant.fit(TEXTS, LABELS)
    assert sum(read) == 12


def test_discriminants_of_single_examples_answer_but_have_nothing_to_leave_out(instant):
    instant.fit(["good film", "bad film"], ["good", "bad"])
    assert instant.held_out_score_ is None
    assert instant.training_["validation"] == "none"
    assert instant.predict(["good film", "bad film"]).tolist() == ["good", "bad"]
    with pytest.raises(CPTuningError, match="Every class has a single example"):
        instant.set_params(unknown_threshold="auto").fit(["good film", "bad film"], [1, 2])


@pytest.mark.parametrize("int8", [False, True])
def test_saved_and_exported_discriminants_answer_alike(instant, tmp_path, int8):
    from cptuning.export import export_onnx

    instant.fit(TEXTS, LABELS)
    instant.save(tmp_path / "saved")
    export_onnx(instant, tmp_path / "exported", int8=int8)
    expected = instant.predict_proba(TEXTS)
    np.testing.assert_allclose(load(tmp_path / "saved").predict_proba(TEXTS), expected, atol=1e-4)
    exported = load(tmp_path / "exported")
    assert exported.predictor_.inference == "lda"
    if int8:
        assert exported.predict(TEXTS).tolist() == instant.predict(TEXTS).tolist()
    else:
        np.testing.assert_allclose(exported.predict_proba(TEXTS), expected, atol=1e-3)


# What users get wrong


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        (TEXTS, ["good"] * 12, "All 12 examples are labelled 'good'"),
        ([], [], "empty|no examples"),
        (TEXTS, LABELS[:-1], "12"),
        ("a bare string", LABELS, "list"),
        ([None, *TEXTS[1:]], LABELS, "1"),
        ([float("nan"), *TEXTS[1:]], LABELS, "1"),
        (TEXTS, [None, *LABELS[1:]], "1"),
    ],
)
def test_bad_input_gets_one_sentence(classifier, texts, labels, sentence):
    with pytest.raises(CPTuningError, match=sentence) as caught:
        classifier.fit(texts, labels)
    assert "\n" not in str(caught.value)


def test_a_label_seen_once_is_warned_of_and_can_be_predicted(classifier, caplog):
    classifier.fit([*TEXTS, "the red train leaves at ten"], [*LABELS, "travel"])
    assert "'travel' has a single example" in caplog.text
    assert classifier.predict(["the red train leaves at ten"]).tolist() == ["travel"]


def test_long_texts_are_shortened_with_a_warning(classifier, caplog):
    long = "great movie " * 100_000  # over a megabyte
    classifier.fit([*TEXTS, long], [*LABELS, "good"])
    assert "1 of 13 texts are longer than" in caplog.text
    assert classifier.predict([long]).shape == (1,)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"validation": "magic"}, "validation is 'magic'"),
        ({"validation": "cross-fit", "folds": 1}, "folds is 1"),
        ({"preset": "best"}, "no preset 'best'"),
        ({"backbone": "no/such-model"}, "embedded"),
        ({"template": "{a} it is"}, r"no \[MASK\]"),
        ({"template": "{a} ? [MASK] {b}"}, "pairs"),
        ({"max_length": 8, "template": "{a} one two three four five six [MASK]"}, "no room"),
        ({"device": "warp-drive"}, "device"),
        ({"random_state": -1}, "from 0 to 4294967295"),
        ({"random_state": 2**32}, "from 0 to 4294967295"),
        ({"preset": ["default"]}, "no preset"),
        ({"callbacks": 5}, "callbacks is 5"),
        ({"device": None}, "device None"),
        ({"device": "meta"}, "device 'meta'"),
        ({"device": ["cpu"]}, "not available"),
        ({"learning_rate": float("inf")}, "finite"),
        ({"temperature": float("nan")}, "finite"),
        ({"steps": 10**30}, "at most 2147483647"),
    ],
)
def test_wrong_parameters_get_one_sentence_when_fit_is_called(
    classifier, parameters, sentence, monkeypatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    classifier.set_params(**parameters)
    with pytest.raises(CPTuningError, match=sentence):
        classifier.fit(TEXTS, LABELS)


@pytest.mark.parametrize("k", [0, -1, 1.5, "a", None, True])
def test_a_number_of_reasons_that_is_none_is_refused(fitted, k):
    with pytest.raises(CPTuningError, match="k is"):
        fitted.explain(TEXTS, k)


def test_half_a_surrogate_pair_in_a_label_is_refused_before_the_training(classifier):
    with pytest.raises(CPTuningError, match="label in row 2 contains half of a surrogate pair"):
        classifier.fit(["a", "b"], ["x", "\ud800"])


def test_dev_labels_that_training_does_not_have_are_refused(classifier):
    with pytest.raises(CPTuningError):
        classifier.fit(TEXTS, LABELS, X_dev=["a"], y_dev=["never seen"])
    with pytest.raises(CPTuningError, match="X_dev and y_dev together"):
        classifier.fit(TEXTS, LABELS, X_dev=["a"])


def test_a_class_named_unknown_and_a_threshold_do_not_go_together(classifier):
    classifier.set_params(unknown_threshold=0.5)
    with pytest.raises(CPTuningError, match="'unknown'"):
        classifier.fit(TEXTS, ["unknown" if label == "bad" else label for label in LABELS])


# A citizen of scikit-learn


def test_an_unfitted_classifier_says_so(classifier):
    for call in ("predict", "predict_proba", "transform", "explain", "decision_function"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(classifier, call)(TEXTS)


def test_clone_copies_the_parameters_and_nothing_learned(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "predictor_")
    assert copy.set_params(margin=0.1).margin == 0.1


def test_grid_search_and_cross_validation_work(classifier):
    search = GridSearchCV(classifier, {"steps": [0, 2]}, cv=2).fit(TEXTS, LABELS)
    assert search.best_params_["steps"] in (0, 2)
    assert search.predict(TEXTS).shape == (12,)
    scores = cross_val_score(classifier, TEXTS, LABELS, cv=3)
    assert scores.shape == (3,)
    assert not np.isnan(scores).any()


def test_it_stands_in_a_pipeline_at_the_end_and_in_the_middle(classifier):
    from sklearn.linear_model import LogisticRegression

    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    assert make_pipeline(lower, classifier).fit(TEXTS, LABELS).predict(TEXTS).shape == (12,)
    stacked = make_pipeline(clone(classifier), LogisticRegression()).fit(TEXTS, LABELS)
    assert stacked.predict(TEXTS).shape == (12,)


def test_data_frames_series_and_datasets_are_taken(classifier):
    import pandas as pd
    from datasets import Dataset

    frame = pd.DataFrame({"text": TEXTS, "label": LABELS})
    expected = classifier.fit(TEXTS, LABELS).predict(TEXTS).tolist()
    assert classifier.fit(frame["text"], frame["label"]).predict(frame).tolist() == expected
    table = Dataset.from_pandas(frame)
    assert classifier.fit(table, table["label"]).predict(table).tolist() == expected


# scikit-learn's own checks. With the string tag `check_estimator` would run a single one of them
# (its data are numbers), so those that need no data are called by name, and every other one is
# named with the reason why it is not.
CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_get_params_invariance",
    "check_set_params",
    "check_parameters_default_constructible",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_estimators_unfitted",
    "check_n_features_in_after_fitting",
    "check_non_transformer_estimators_n_iter",
)
NOT_CALLED = {
    "its examples are numbers; with texts, see the tests below and above where it applies": (
        "check_array_api_input check_array_api_input_and_values check_array_api_mixed_inputs "
        "check_array_api_same_namespace check_class_weight_balanced_classifiers "
        "check_class_weight_balanced_linear_classifier check_class_weight_classifiers "
        "check_classifier_data_not_an_array check_classifiers_classes check_classifiers_one_label "
        "check_classifiers_predictions check_classifiers_regression_target "
        "check_classifiers_train check_complex_data check_dataframe_column_names_consistency "
        "check_decision_proba_consistency check_dict_unchanged check_dont_overwrite_parameters "
        "check_dtype_object check_estimator_sparse_array check_estimator_sparse_matrix "
        "check_estimator_sparse_tag check_estimators_data_not_an_array check_estimators_dtypes "
        "check_estimators_empty_data_messages check_estimators_fit_returns_self "
        "check_estimators_nan_inf check_estimators_overwrite_params check_estimators_pickle "
        "check_f_contiguous_array_estimator check_fit1d check_fit2d_1feature check_fit2d_1sample "
        "check_fit2d_predict1d check_fit_check_is_fitted check_fit_idempotent "
        "check_fit_non_negative check_fit_score_takes_y check_inplace_ensure_writeable "
        "check_methods_sample_order_invariance check_methods_subset_invariance "
        "check_n_features_in check_nonsquare_error check_pipeline_consistency "
        "check_positive_only_tag_during_fit check_readonly_memmap_input check_requires_y_none "
        "check_supervised_y_2d check_supervised_y_no_nan check_sparsify_coefficients "
        "check_classifier_not_supporting_multiclass "
    ),
    "fit takes no weights of examples": (
        "check_all_zero_sample_weights_error check_classifiers_one_label_sample_weights "
        "check_sample_weight_equivalence_on_dense_data "
        "check_sample_weight_equivalence_on_sparse_data check_sample_weights_list "
        "check_sample_weights_not_an_array check_sample_weights_not_overwritten "
        "check_sample_weights_pandas_series check_sample_weights_shape "
    ),
    "an example has one label": (
        "check_classifier_multioutput "
        "check_classifiers_multilabel_output_format_decision_function "
        "check_classifiers_multilabel_output_format_predict "
        "check_classifiers_multilabel_output_format_predict_proba "
        "check_classifiers_multilabel_representation_invariance "
    ),
    "it is for another kind of estimator": (
        "check_clusterer_compute_labels_predict check_clustering check_outlier_contamination "
        "check_outlier_corruption check_outliers_fit_predict check_outliers_train "
        "check_regressor_data_not_an_array check_regressor_multioutput check_regressors_int "
        "check_regressors_no_decision_function check_regressors_train "
    ),
    "it is for transformers, and the embeddings have no names": (
        "check_get_feature_names_out_error check_global_output_transform_pandas "
        "check_global_set_output_transform_polars check_set_output_transform "
        "check_set_output_transform_pandas check_set_output_transform_polars "
        "check_transformer_data_not_an_array check_transformer_general "
        "check_transformer_get_feature_names_out check_transformer_get_feature_names_out_pandas "
        "check_transformer_n_iter check_transformer_preserve_dtypes check_transformers_unfitted "
        "check_transformers_unfitted_stateless "
    ),
    "there is no partial_fit": ("check_estimators_partial_fit_n_features "),
    "its invalid values go with numbers; ours are checked by name in this file": (
        "check_param_validation "
    ),
    "it is all checks in a row": ("check_estimator "),
}


@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learns_own_check(check):
    from sklearn.utils import estimator_checks

    getattr(estimator_checks, check)("CPTuningClassifier", CPTuningClassifier())


def test_every_other_check_of_scikit_learn_has_a_reason():
    from sklearn.utils import estimator_checks

    home = estimator_checks.__name__
    there = {
        name
        for name, value in vars(estimator_checks).items()
        if name.startswith("check_") and getattr(value, "__module__", "") == home
    }
    named = [name for names in NOT_CALLED.values() for name in names.split()]
    assert len(named) == len(set(named))
    assert not set(named) & set(CHECKS)
    # Another version of scikit-learn may have fewer; a new one needs a decision.
    assert there <= {*named, *CHECKS}


def test_a_fitted_classifier_can_be_pickled(classifier):
    fitted = classifier.fit(TEXTS, LABELS)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_fit_returns_self_and_leaves_the_parameters_alone(classifier):
    before = classifier.get_params()
    assert classifier.fit(TEXTS, LABELS) is classifier
    assert classifier.get_params() == before


def test_fit_does_not_change_its_input(classifier):
    texts, labels = list(TEXTS), list(LABELS)
    classifier.fit(texts, labels)
    assert (texts, labels) == (TEXTS, LABELS)


def test_a_second_fit_forgets_the_first(classifier):
    classifier.fit(["one", "two", "red", "blue"], ["n", "n", "c", "c"])
    again = classifier.fit(TEXTS, LABELS).predict_proba(TEXTS)
    assert (again == clone(classifier).fit(TEXTS, LABELS).predict_proba(TEXTS)).all()


def test_a_text_is_answered_alike_alone_and_in_company(fitted):
    together = fitted.predict_proba(TEXTS)
    alone = np.concatenate([fitted.predict_proba([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    order = np.random.default_rng(0).permutation(12)
    shuffled = fitted.predict_proba([TEXTS[i] for i in order])
    np.testing.assert_allclose(shuffled, together[order], atol=1e-5)


def test_the_decision_function_has_scikit_learns_shape(classifier, fitted):
    scores = fitted.decision_function(TEXTS)
    assert scores.shape == (12,)
    assert ((scores > 0) == (fitted.predict(TEXTS) == "good")).all()
    three = clone(classifier).fit([*TEXTS, "red", "train"], [*LABELS, "x", "x"])
    assert three.decision_function(TEXTS).shape == (12, 3)


@pytest.mark.parametrize(
    "labels", [[0] * 6 + [1] * 6, [False] * 6 + [True] * 6, [0.5] * 6 + [1.5] * 6]
)
def test_labels_of_any_simple_type_come_back_as_they_were(classifier, labels):
    fitted = classifier.fit(TEXTS, labels)
    assert {type(value) for value in fitted.predict(TEXTS).tolist()} == {type(labels[0])}


def test_methods_are_made_by_name():
    assert "cp-tuning" in list_methods()
    assert make_classifier("cp-tuning", margin=0.2).margin == 0.2
    with pytest.raises(CPTuningError, match="no method 'svm'"):
        make_classifier("svm")
    with pytest.raises(CPTuningError, match="depth"):
        make_classifier("cp-tuning", depth=3)


def test_training_leaves_the_callers_random_state_alone(classifier):
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    classifier.fit(TEXTS, LABELS)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("validation", ["cross-fit", "none"])
def test_a_training_that_went_astray_is_told_in_one_sentence(tiny, validation):
    astray = CPTuningClassifier(
        str(tiny("bert")), learning_rate=1e30, steps=6, validation=validation, verbose=False
    )
    with pytest.raises(CPTuningError, match="lower learning_rate"):
        astray.fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("unknown_threshold", "far"),
        ("unknown_threshold", float("nan")),
        ("precision", "fp8"),
        ("folds", "x"),
        ("random_state", 1.5),
        ("random_state", "a"),
        ("checkpoint_seconds", "x"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_named_before_the_training(tiny, name, value):
    with pytest.raises(CPTuningError, match=name):
        CPTuningClassifier(str(tiny("bert")), verbose=False, **{name: value}).fit(TEXTS, LABELS)


def test_bfloat16_training_gives_finite_float32_embeddings(classifier):
    embeddings = classifier.set_params(precision="bfloat16").fit(TEXTS, LABELS).transform(TEXTS)
    assert embeddings.dtype == np.float32
    assert np.isfinite(embeddings).all()
    exact = classifier.set_params(precision="float32").fit(TEXTS, LABELS).transform(TEXTS)
    assert 0 < np.abs(embeddings - exact).max() < 0.2


def test_a_loaded_backbone_is_trained_in_place_and_named_in_the_folder(tiny, tmp_path):
    from sklearn.base import clone

    from cptuning import load
    from cptuning.backbone import load_backbone

    backbone = load_backbone(tiny("bert"))
    before = backbone.model.get_input_embeddings().weight.detach().clone()
    quick = {"steps": 2, "validation": "none", "verbose": False, "device": "cpu"}
    quick["frozen_share"] = 0.0
    texts, labels = ["great", "good", "dull", "bad"], ["+", "+", "-", "-"]
    loaded = CPTuningClassifier(backbone, **quick)
    loaded.fit(texts, labels)
    assert not backbone.model.get_input_embeddings().weight.equal(before)
    named = CPTuningClassifier(str(tiny("bert")), **quick).fit(texts, labels)
    assert np.array_equal(loaded.transform(texts), named.transform(texts))
    assert clone(loaded).backbone.name == backbone.name
    loaded.save(tmp_path / "model")
    assert load(tmp_path / "model").backbone == backbone.name


def test_saving_leaves_somebodys_models_in_the_checkpoint_folder_alone(classifier, tmp_path):
    place = tmp_path / "models"
    place.mkdir()
    for name in ("theirs.safetensors", "training.safetensors", "copy.unfinished"):
        (place / name).write_text("a month of work")
    classifier.set_params(checkpoint_dir=place, checkpoint_seconds=0)
    classifier.fit(TEXTS, LABELS).save(tmp_path / "model")
    names = ["copy.unfinished", "theirs.safetensors", "training.safetensors"]
    assert sorted(path.name for path in place.iterdir()) == names


@pytest.mark.parametrize("seconds", [0, 3600])
@pytest.mark.parametrize("inside", ["", "backbone"])
def test_a_checkpoint_folder_in_the_models_own_place_does_not_destroy_the_model(
    classifier, tmp_path, inside, seconds
):
    model = tmp_path / "model"
    classifier.set_params(checkpoint_dir=model / inside, checkpoint_seconds=seconds)
    for _ in range(2):  # to a new place, and over an earlier model
        classifier.fit(TEXTS, LABELS).save(model)
        np.testing.assert_array_equal(load(model).predict(TEXTS), classifier.predict(TEXTS))
    assert not list(model.rglob("*.cptuning-*"))


# What help() shows


def section(cls, title):
    """The names that a section of a class's docstring describes, each with its description."""
    lines = (cls.__doc__ or "").split(f"\n{title}\n{'-' * len(title)}\n")[1].splitlines()
    found, name = {}, ""
    for line in lines:
        if not line:
            break
        if line.startswith("    "):
            found[name] += line.strip()
        else:
            name = line.partition(" : ")[0]
            found[name] = ""
    return found


@pytest.mark.parametrize("method", list_methods())
def test_help_describes_every_parameter_of_every_method(method):
    cls = classifier_class(method)
    described = section(cls, "Parameters")
    assert tuple(described) == cls.parameter_names()
    assert all(text.endswith(".") and len(text) > 10 for text in described.values())


def test_help_describes_every_attribute_that_a_fit_leaves(fitted):
    left = {name for name in vars(fitted) if name.endswith("_")}
    assert left | {"classes_", "n_features_in_"} == set(section(CPTuningClassifier, "Attributes"))


@pytest.mark.parametrize("method", list_methods())
def test_the_representation_shows_what_was_changed_and_nothing_else(method):
    name = classifier_class(method).__name__
    assert repr(make_classifier(method)) == f"{name}()"
    assert (
        repr(make_classifier(method, steps=3, verbose=False)) == f"{name}(steps=3, verbose=False)"
    )


# Preparing once, for an estimate and for the fit


@pytest.mark.parametrize("method", ["cp-tuning", "pet", "p-tuning", "lm-bff-l"])
def test_an_estimate_of_what_was_prepared_does_not_change_the_fit(folder, method):
    words = {} if method == "cp-tuning" else {"label_words": {"good": "great", "bad": "dull"}}
    few = {"n_mappings": 2, "candidate_steps": 1} if method == "lm-bff-l" else {}
    classifier = make_classifier(
        method, backbone=folder, steps=2, batch_size=4, verbose=False, **words, **few
    )
    expected = classifier.fit(TEXTS, LABELS).predict_proba(TEXTS)
    training = classifier.prepare(TEXTS, LABELS)
    assert classifier.fit_seconds(training) > 0
    found = classifier.fit_prepared(training).predict_proba(TEXTS)
    np.testing.assert_array_equal(found, expected)


def test_a_callback_may_define_only_what_it_needs(classifier):
    class Steps(Callback):
        def __init__(self):
            self.seen = []

        def on_step(self, step, losses):
            self.seen.append(step)

    steps = Steps()
    classifier.set_params(callbacks=[steps]).fit(TEXTS, LABELS)
    assert steps.seen == [1, 2, 3]


def test_what_is_not_a_callback_is_refused_before_the_training(classifier):
    with pytest.raises(CPTuningError, match=r"is not a cptuning\.training\.Callback"):
        classifier.set_params(callbacks=[print]).fit(TEXTS, LABELS)
