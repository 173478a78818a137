package tools_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"agentsite/agents/op"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"

	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestTools is the whole offer of a greenhouse as a client sees it.
func TestTools(t *testing.T) {
	for _, tool := range op.Tools {
		if !tools.IsOperation(tool.Name) {
			t.Errorf("%s is no tool", tool.Name)
		}
	}
	r := newRig(t, wire(t, "greenhouse", "greenhouse"))
	defer r.stop()
	type shown struct {
		Name, Description string
		Hints             tools.Hints
		Input, Output     json.RawMessage
	}
	var all []shown
	for _, tl := range r.tools() {
		all = append(all, shown{tl.Name, tl.Description, tl.Hints, tl.Input, tl.Output})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/tools.json"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))) {
		t.Errorf("the tools are not those of %s; if that is meant, run the test with -update\n%s", file, b.Bytes())
	}
}

// TestToolsContract holds every tool to what the design promises of all.
func TestToolsContract(t *testing.T) {
	r := newRig(t, wire(t, "greenhouse", "greenhouse"))
	defer r.stop()
	for _, tl := range r.tools() {
		if len(tl.Name) > 40 || strings.Trim(tl.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Errorf("%q is no name of a tool", tl.Name)
		}
		if tl.Hints.ReadOnly && tl.Hints.Destructive {
			t.Errorf("%s: %+v", tl.Name, tl.Hints)
		}
		for what, text := range map[string][]byte{"input": tl.Input, "output": tl.Output} {
			var s jsonschema.Schema
			if err := json.Unmarshal(text, &s); err != nil || s.Type != "object" {
				t.Errorf("%s: its %s is no schema of an object: %v", tl.Name, what, err)
			}
			if _, err := s.Resolve(nil); err != nil {
				t.Errorf("%s: %s: %v", tl.Name, what, err)
			}
			if bytes.Contains(text, []byte("null")) {
				t.Errorf("%s: its %s allows null: %s", tl.Name, what, text)
			}
		}
	}
	again := newRig(t, wire(t, "greenhouse", "greenhouse"))
	defer again.stop()
	for i, tl := range again.tools() {
		if !bytes.Equal(tl.Input, r.tools()[i].Input) || !bytes.Equal(tl.Output, r.tools()[i].Output) {
			t.Errorf("%s comes out another way the next time", tl.Name)
		}
	}
}

// only is a device with one point of each of the kinds.
type only struct {
	device.Device
	kinds []device.Kind
}

func (o only) Describe() device.Description {
	d := device.Description{Model: "m"}
	for _, k := range o.kinds {
		p := device.Point{Name: string(k), Kind: k, Safe: device.Bool(false)}
		if k == device.KindLevel {
			p.Safe, p.Range = device.Number(0), device.Range{Max: 1}
		}
		d.Points = append(d.Points, p)
	}
	return d
}

func (only) Close() error { return nil }

func TestToolsFollowTheWiring(t *testing.T) {
	for _, tt := range []struct {
		kinds []device.Kind
		want  string
	}{
		{nil, "list_points site_status"},
		{[]device.Kind{device.KindMeasurement}, "list_points read_points read_history explain_point site_status"},
		{[]device.Kind{device.KindState}, "list_points read_points read_history explain_point site_status"},
		{[]device.Kind{device.KindEvent}, "list_points read_points read_history explain_point site_status"},
		{[]device.Kind{device.KindSwitch}, "list_points read_points read_history explain_point switch_output release_output emergency_stop site_status"},
		{[]device.Kind{device.KindLevel}, "list_points read_points read_history explain_point set_level release_output emergency_stop site_status"},
		{[]device.Kind{device.KindText}, "list_points show_text site_status"},
		{[]device.Kind{device.KindImage}, "list_points capture_image site_status"},
		{[]device.Kind{device.KindImage, device.KindText, device.KindLevel, device.KindSwitch, device.KindMeasurement},
			"list_points read_points read_history explain_point switch_output set_level release_output emergency_stop show_text capture_image site_status"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, []node.Device{thing("d", &fake{only: only{kinds: tt.kinds}})})
			defer r.stop()
			var names []string
			for _, tl := range r.tools() {
				names = append(names, tl.Name)
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("%v: %s, want %s", tt.kinds, got, tt.want)
			}
			if _, err := r.call(anna, "nope", `{}`); err != tools.ErrNotFound {
				t.Error(err)
			}
			for _, tl := range []string{"switch_output", "capture_image", "show_text"} {
				if _, err := r.call(anna, tl, `{}`); !slices.Contains(names, tl) && err != tools.ErrNotFound {
					t.Errorf("%v: %s is not offered and answers %v", tt.kinds, tl, err)
				}
			}
		})
	}
}

// TestThirtyDevices: the offer's size follows the names, and stays small. The exact
// figure, with what the protocol adds, is the benchmark's.
func TestThirtyDevices(t *testing.T) {
	var list []string
	for i := range 20 {
		list = append(list, fmt.Sprintf("climate-%02d", i+1), "climate")
	}
	for i := range 10 {
		list = append(list, fmt.Sprintf("relay-%02d", i+1), "relay")
	}
	r := newRig(t, wire(t, list...))
	defer r.stop()
	size, seen := 0, 0
	for _, tl := range r.tools() {
		seen += len(tl.Name) + len(tl.Description) + len(tl.Input) // by a model
		size += len(tl.Name) + len(tl.Description) + len(tl.Input) + len(tl.Output)
		size += 80 // names of members, annotations, punctuation
		if tl.View {
			size += 68 // of its _meta, for clients that have the view
		}
	}
	const most, around = 8192, 220 // the response with its own members
	if size+around > most {
		t.Errorf("the tools of thirty devices take %d bytes, want %d at most", size+around, most)
	}
	if seen > 5000 {
		t.Errorf("a model sees %d bytes of them, want 5000 at most", seen)
	}
	t.Logf("%d bytes, of which a model sees %d", size+around, seen)
}
