"""Calls that mypy and pyright must reject, each in one line."""

from onnx_slice_fold import diff, evaluate, explain, fold, infer_shapes, rules, show, simplify, slim

fold(42)  # wrong
fold(["model.onnx"])  # wrong
fold(open("model.onnx"))  # wrong
fold("model.onnx", 42)  # wrong
fold("model.onnx", str)  # wrong
fold("model.onnx", dims=["s33=1"])  # wrong
fold("model.onnx", dimz={"s33": 1})  # wrong
fold("model.onnx", shapes="al")  # wrong
show(42)  # wrong
explain(42)  # wrong
diff("model.onnx", 42)  # wrong
evaluate(42, {})  # wrong
infer_shapes(42)  # wrong
simplify(42)  # wrong
slim(42)  # wrong
slim("model.onnx", model_chek=True)  # wrong
rules(42)  # wrong
