package owner

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"agentsite/node/access"
	"agentsite/node/acts"
)

// TestDocumented: docs/wire.md has each method, and each member of requests and of the answers of
// package acts, so that a client can be written from it.
func TestDocumented(t *testing.T) {
	file, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	names := []string{string(ChallengeMethod), string(ProveMethod), string(ReclaimMethod), string(PresentMethod)}
	types := []reflect.Type{reflect.TypeFor[access.Proof](), reflect.TypeFor[challenge](), reflect.TypeFor[claimed](), reflect.TypeFor[access.Answer]()}
	for _, row := range (&acts.Site{}).Operations() {
		names = append(names, row.Name)
		types = append(types, row.Request)
		if row.Answer.PkgPath() == reflect.TypeFor[acts.Site]().PkgPath() {
			types = append(types, row.Answer)
		}
	}
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s is not in docs/wire.md", name)
		}
	}
	for len(types) > 0 {
		of := types[0]
		types = types[1:]
		for f := range of.Fields() {
			member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(text, "`"+member+"`") && !strings.Contains(text, "`"+member+": ") {
				t.Errorf("%v: the member %s is not in docs/wire.md", of, member)
			}
			inner := f.Type
			if inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			if inner.PkgPath() == reflect.TypeFor[acts.Site]().PkgPath() {
				types = append(types, inner)
			}
		}
	}
}
