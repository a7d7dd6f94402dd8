"""What is in a model, and how long it takes here."""
import fleetfit

fleetfit.write_zoo_network("mobilenet_v2", "small.onnx", width=0.25, image=32)
model = fleetfit.inspect("small.onnx")
print(f"{len(model['ops'])} operators, {model['totals']['flops'] / 1e6:.2f} MFLOPs, {model['totals']['params']} parameters")

place = fleetfit.Workplace("memory:")
place.add_device("int8", precision="int8")
for one in place.measure(["small.onnx"], devices=["local", "int8"], max_time_s=0.5):
    print(f"{one['device']}: {one['latency_ms']['median']:.4f} ms ({one['status']})")
