package board

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/warthog618/go-gpiocdev/uapi"

	"agentsite/device"
)

// TestRequest: the contents of one request to the kernel. An output without a value in it would
// begin low.
func TestRequest(t *testing.T) {
	values := func(n uapi.OutputValues) uapi.LineConfigAttribute {
		return uapi.LineConfigAttribute{Attr: n.Encode(), Mask: 0b11}
	}
	for _, tc := range []struct {
		config LineConfig
		flags  uapi.LineFlagV2
		attrs  []uapi.LineConfigAttribute
	}{
		{LineConfig{Output: true}, uapi.LineFlagV2Output, []uapi.LineConfigAttribute{values(0)}},
		{LineConfig{Output: true, Values: 0b10, ActiveLow: true}, uapi.LineFlagV2Output | uapi.LineFlagV2ActiveLow, []uapi.LineConfigAttribute{values(0b10)}},
		{LineConfig{Output: true, Values: 1, Drive: OpenDrain}, uapi.LineFlagV2Output | uapi.LineFlagV2OpenDrain, []uapi.LineConfigAttribute{values(1)}},
		{LineConfig{Output: true, Drive: OpenSource}, uapi.LineFlagV2Output | uapi.LineFlagV2OpenSource, []uapi.LineConfigAttribute{values(0)}},
		{LineConfig{}, uapi.LineFlagV2Input, nil},
		{LineConfig{Pull: PullUp}, uapi.LineFlagV2Input | uapi.LineFlagV2BiasPullUp, nil},
		{LineConfig{Pull: PullDown}, uapi.LineFlagV2Input | uapi.LineFlagV2BiasPullDown, nil},
		{LineConfig{Pull: PullNone, Edges: true, Debounce: 20 * time.Millisecond}, uapi.LineFlagV2Input | uapi.LineFlagV2BiasDisabled | uapi.LineFlagV2EdgeBoth,
			[]uapi.LineConfigAttribute{{Attr: uapi.DebouncePeriod(20 * time.Millisecond).Encode(), Mask: 0b11}}},
	} {
		got := tc.config.config(2)
		want := uapi.LineConfig{Flags: tc.flags}
		for _, a := range tc.attrs {
			want.AddAttribute(a)
		}
		if got != want {
			t.Errorf("%+v asks for %+v, want %+v", tc.config, got, want)
		}
	}
}

// pipeLines are lines whose edges come from a pipe, in the kernel's form.
func pipeLines(t *testing.T) (*Line, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return newLine("GPIO17", &kernelLines{r, raw, []int{17, 18}}), w
}

func send(t *testing.T, w *os.File, events ...uapi.LineEvent) {
	t.Helper()
	if _, err := w.Write(unsafe.Slice((*byte)(unsafe.Pointer(&events[0])), len(events)*int(unsafe.Sizeof(events[0])))); err != nil {
		t.Fatal(err)
	}
}

func TestKernelEdges(t *testing.T) {
	line, w := pipeLines(t)
	now := monotonic()
	send(t, w,
		uapi.LineEvent{Timestamp: uint64(now - time.Second), ID: uapi.LineEventRisingEdge, Offset: 17, Seqno: 1},
		uapi.LineEvent{Timestamp: uint64(now + time.Second), ID: uapi.LineEventRisingEdge, Offset: 18, Seqno: 2},
		uapi.LineEvent{Timestamp: uint64(now + 2*time.Second), ID: uapi.LineEventFallingEdge, Offset: 17, Seqno: 5})
	ctx, cancel := context.WithCancel(t.Context())
	var got []Edge
	err := line.Watch(ctx, time.Now(), func(e Edge) {
		got = append(got, e)
		if len(got) == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(got) != 2 {
		t.Fatalf("%v, %+v", err, got)
	}
	if got[0].Line != 1 || !got[0].Active || got[0].Lost || got[1].Line != 0 || got[1].Active || !got[1].Lost {
		t.Errorf("%+v", got)
	}
	if apart := got[1].At.Sub(got[0].At); apart < 999*time.Millisecond || apart > 1001*time.Millisecond {
		t.Errorf("the edges are %v apart, want 1s", apart)
	}
	// The next watch is not ended by the deadline of the last.
	ctx, cancel = context.WithCancel(t.Context())
	later := monotonic() + time.Hour
	send(t, w, uapi.LineEvent{Timestamp: uint64(later), ID: uapi.LineEventRisingEdge, Offset: 17, Seqno: 6})
	if err := line.Watch(ctx, time.Now(), func(Edge) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestKernelWatchEnds when the chip goes and when the line is closed.
func TestKernelWatchEnds(t *testing.T) {
	line, w := pipeLines(t)
	w.Close()
	if err := line.Watch(t.Context(), time.Now(), nil); err == nil {
		t.Error("a watch without a chip ended well")
	}
	line, _ = pipeLines(t)
	ended := make(chan error)
	go func() { ended <- line.Watch(t.Context(), time.Now(), nil) }()
	line.Close()
	if err := <-ended; device.AsFault(err).Kind != device.Offline {
		t.Error(err)
	}
}

// TestNoChips: this machine's own, or a tree without any.
func TestNoChips(t *testing.T) {
	dev := t.TempDir()
	os.WriteFile(filepath.Join(dev, "gpiochip0"), nil, 0o600) // no device
	all, err := kernelChips{dev}.Chips()
	if err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := (kernelChips{dev}).Request("gpiochip1", []int{0}, LineConfig{}); !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
	if _, err := New().machine.GPIO.Chips(); err != nil && device.AsFault(fault("GPIO1", err)).Kind != device.Denied {
		t.Error(err)
	}
}
