package fault

import (
	"errors"
	"testing"

	"agentsite/agents"
	"agentsite/device"
)

// TestResult: a code maps to the kind that it was made of, a protocol's own codes first. After an
// answer that is not JSON-RPC the outcome is unknown.
func TestResult(t *testing.T) {
	for _, kind := range []device.FaultKind{device.Invalid, device.Denied, device.Unsafe, device.Busy, device.Expired, device.UnknownOutcome, device.Unavailable} {
		_, err := result([]byte(`{"error":{"code":`+device.Number(float64(Code(kind))).String()+`,"message":"secret"}}`), nil)
		if f := device.AsFault(err); f.Kind != kind {
			t.Errorf("%s came back as %v", kind, err)
		}
	}
	own := map[int]device.FaultKind{403: device.Busy}
	for text, want := range map[string]device.FaultKind{
		`{"error":{"code":403}}`: device.Busy, `{"error":{"code":1}}`: device.Unavailable, `{}`: device.UnknownOutcome, `<html>`: device.UnknownOutcome,
	} {
		if _, err := result([]byte(text), own); device.AsFault(err).Kind != want {
			t.Errorf("%s is %v, not %s", text, err, want)
		}
	}
	if v, err := result([]byte(`{"result":{"a":1}}`), nil); err != nil || string(v) != `{"a":1}` {
		t.Errorf("%s: %v", v, err)
	}
	for code, want := range map[int]device.FaultKind{401: device.Denied, 404: device.Unavailable, 429: device.Busy, 500: device.UnknownOutcome, 503: device.Busy} {
		if err := status(code); device.AsFault(err).Kind != want {
			t.Errorf("%d is %v, not %s", code, err, want)
		}
	}
}

// TestTold: only an error that was an answer says its kind.
func TestTold(t *testing.T) {
	var says interface{ FaultKind() string }
	var away *agents.Unreached
	if err := Told(device.Faultf(device.Denied, "no")); !errors.As(err, &says) || says.FaultKind() != "denied" {
		t.Error(err)
	}
	if err := Told(device.Faultf(device.Offline, "no")); !errors.As(err, &away) || errors.As(err, &says) {
		t.Error(err)
	}
	if err := Told(device.Faultf(device.UnknownOutcome, "no")); errors.As(err, &says) || device.AsFault(err).Kind != device.UnknownOutcome {
		t.Error(err)
	}
	if Told(nil) != nil {
		t.Error("nothing is an error")
	}
}
