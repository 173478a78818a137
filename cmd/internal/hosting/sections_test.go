package hosting

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentsite/node/config"
)

// TestSectionDocs: the documentation of the configuration has all keys of an agent with a section of its own.
func TestSectionDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		if !slices.Contains([]string{config.AIOS, config.MQTT, config.Notify, config.Export, config.Power, config.HomeAssistant}, k.Name) {
			continue
		}
		_, part, _ := strings.Cut(string(text), "\n## `"+k.Name+"`\n")
		part, _, _ = strings.Cut(part, "\n## ")
		keys := keysOf(reflect.TypeOf(k.New()).Elem())
		for _, key := range keys {
			if !strings.Contains(part, "`"+key+"`") {
				t.Errorf("the section %s has no %s", k.Name, key)
			}
		}
		if len(keys) == 0 {
			t.Errorf("%s has no keys", k.Name)
		}
	}
}

// keysOf returns the keys of a struct, with those of the structs in it.
func keysOf(of reflect.Type) (all []string) {
	for f := range of.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" {
			continue
		}
		all = append(all, key)
		in := f.Type
		if in.Kind() == reflect.Map {
			in = in.Elem()
		}
		if in.Kind() == reflect.Struct {
			all = append(all, keysOf(in)...)
		}
	}
	return all
}
