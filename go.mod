module agentsite

go 1.26.0

require (
	github.com/fxamacker/cbor/v2 v2.9.6
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/goccy/go-yaml v1.19.2
	github.com/google/jsonschema-go v0.4.3
	pgregory.net/rapid v1.2.0
)

require github.com/x448/float16 v0.8.4 // indirect
