module go.opentelemetry.io/otel/metric

go 1.26.0

require go.opentelemetry.io/otel v1.44.0

replace (
	go.opentelemetry.io/otel => ../otel
	go.opentelemetry.io/otel/trace => ../otel-trace
)
