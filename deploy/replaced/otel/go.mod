module go.opentelemetry.io/otel

go 1.26.0

require (
	go.opentelemetry.io/otel/metric v1.44.0
	go.opentelemetry.io/otel/trace v1.44.0
)

replace (
	go.opentelemetry.io/otel/metric => ../otel-metric
	go.opentelemetry.io/otel/trace => ../otel-trace
)
