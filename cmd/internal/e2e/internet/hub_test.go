//go:build e2e && linux

package internet

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/internet"
	"agentsite/discovery"
	"agentsite/discovery/announce"
	"agentsite/discovery/card"
	"agentsite/node/bundle"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestHub: three sites, two authors and four hostile sites, all in the public realm. What the authors
// publish is searched, installed, accepted, updated and withdrawn, by the real programs; the hostile sites
// change none of it.
func TestHub(t *testing.T) {
	t.Parallel()
	program := harness.Need(t, "the program", harness.Program)
	relay := exec.Command(program, "relay", "--listen", "127.0.0.1:0", "--data", harness.TempDir(t), "--json")
	out, err := relay.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relay.Process.Kill(); relay.Wait() })
	var at struct {
		Addresses []string `json:"addresses"`
	}
	if err := json.UnmarshalDecode(jsontext.NewDecoder(out), &at); err != nil {
		t.Fatal(err)
	}

	config := func(name string, level int) string {
		return fmt.Sprintf("site: { name: %s }\ndevices: { house: { driver: sim, every: 1s } }\n"+
			"internet: { realm: public, relays: [%q] }\n"+
			"agents: { fan: { kind: rule, may: set house/vent, when: house/heater, hold: { house/vent: %d } } }\n", name, at.Addresses[0], level)
	}
	start := func(config string) *harness.Site {
		return harness.StartIn(t, harness.TempDir(t), config, nil, program, "run", "--listen-peers", "127.0.0.1:0")
	}
	anna, ben, carla := harness.NewPerson(t), harness.NewPerson(t), harness.NewPerson(t)
	shed, farm := start(config("shed", 50)), start(config("farm", 90))
	barn := harness.StartIn(
		t, harness.TempDir(t), "site: { name: barn }\ndevices: { box: { driver: sim, every: 1s } }\n", nil, program, "run",
	)
	anna.MustCLI(t, "claim", shed.Invitation(t).String())
	ben.MustCLI(t, "claim", farm.Invitation(t).String())
	carla.MustCLI(t, "realm", "join", "public", "--relay", at.Addresses[0])
	anna.MustCLI(t, "agents", "publish", "fan", "--tag", "cooling", "--data", shed.Folder)
	ben.MustCLI(t, "agents", "publish", "fan", "--tag", "cooling", "--data", farm.Folder)
	var published struct {
		ID     string `json:"id"`
		Author string `json:"author"`
	}
	firstOf := func(text string) { // the list of one site
		t.Helper()
		if err := json.Unmarshal([]byte(strings.SplitN(text, "\n", 2)[0]), &published); err != nil {
			t.Fatal(text, err)
		}
	}
	firstOf(anna.MustCLI(t, "agents", "publish", "--data", shed.Folder, "--json"))

	for _, files := range hostile(t, published.ID) {
		hostileSite(t, at.Addresses[0], files)
	}
	search := func(want string) string {
		t.Helper()
		var found string
		harness.WaitFor(t, 2*time.Minute, "it is found: "+want, func() bool {
			found, _ = carla.CLI(t, "agents", "search", "cooling")
			return strings.Contains(found, want)
		})
		return found
	}
	search(published.Author)
	if found := search("farm"); strings.Count(found, "sha256:") != 2 {
		t.Error(found)
	}
	if out, err := carla.CLI(
		t, "agents", "install", "fan", "--bind", "heater=box/heater", "--data", barn.Folder,
	); err == nil || !strings.Contains(err.Error(), "several authors") {
		t.Error(out, err)
	}
	install := func(args ...string) {
		t.Helper()
		harness.WaitFor(t, 2*time.Minute, "it is installed", func() bool {
			out, err := carla.CLI(t, append([]string{"agents", "install", "--data", barn.Folder}, args...)...)
			if err != nil {
				t.Log(out, err)
			}
			return err == nil
		})
	}
	install(published.ID, "--author", published.Author, "--bind", "heater=box/heater")
	carla.MustCLI(t, "agents", "accept", "fan", "--may", "set box/vent max 1m", "--data", barn.Folder)

	anna.MustCLI(t, "agents", "publish", "fan", "--tag", "cooling", "--data", shed.Folder)
	firstOf(anna.MustCLI(t, "agents", "publish", "--data", shed.Folder, "--json"))
	harness.WaitFor(t, 2*time.Minute, "the newer version is offered", func() bool {
		out, _ := carla.CLI(t, "agents", "updates", "--data", barn.Folder)
		return strings.Contains(out, published.ID)
	})
	install(published.ID, "--update", "fan")
	carla.MustCLI(t, "agents", "accept", "fan-new", "--may", "set box/vent max 2m", "--data", barn.Folder)
	if out := carla.MustCLI(
		t, "agents", "--data", barn.Folder,
	); !strings.Contains(out, "max 2m") || strings.Contains(out, "fan-new") {
		t.Error(out)
	}
	anna.MustCLI(t, "agents", "unpublish", "fan", "--data", shed.Folder)
	if out, err := carla.CLI(t, "agents", "search", "cooling"); err != nil || strings.Contains(out, published.ID) {
		t.Error(out, err)
	}
}

// hostile returns what hostile sites give in place of files.
func hostile(t *testing.T, real string) []func(card.FileID) []byte {
	t.Helper()
	id, err := bundle.ParseFileID(real)
	if err != nil {
		t.Fatal(err)
	}
	junk := []byte(strings.Repeat("A", bundle.MaxBytes))
	var many []bundle.FileID
	for i := range 10_000 {
		many = append(many, bundle.FileID{byte(i), byte(i >> 8), 1})
	}
	list := func(ids []bundle.FileID, file func() []byte) func(card.FileID) []byte {
		return func(asked card.FileID) []byte {
			if asked == card.Catalog {
				return bundle.EncodeCatalog(ids)
			}
			return file()
		}
	}
	return []func(card.FileID) []byte{
		list([]bundle.FileID{id}, func() []byte { return junk }), // of another file than it names
		list([]bundle.FileID{bundle.IDOf(junk)}, func() []byte { return junk }),
		list(many, func() []byte { return junk }),
		list([]bundle.FileID{id}, func() []byte { <-t.Context().Done(); return nil }),
	}
}

// hostileSite announces the words and the hash of an agent, and gives what files returns.
func hostileSite(t *testing.T, relay string, files func(card.FileID) []byte) {
	t.Helper()
	key := identity.New()
	first := files(card.Catalog)
	words := []string{"hub", "hub/fan", "hub/cooling", bundle.FileID(first[:32]).Word()}
	slices.Sort(words)
	a := announce.New(announce.Options{
		Key: key, Name: "liar", Claimed: func() bool { return true }, Now: func() (time.Time, bool) { return time.Now(), true },
		Shared: func() []string { return words }, Sequence: discovery.NewSequence(0, func(uint64) error { return nil }),
	})
	relays, err := p2p.ParsePeers([]string{relay})
	if err != nil {
		t.Fatal(err)
	}
	in, err := internet.Join(internet.Options{
		P2P: p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Relays: relays}, Relays: relays,
		Site: &internet.Site{
			Realm: internet.Realm{Realm: discovery.PublicRealm()}, Card: a.Card, Newer: a.Newer, Files: files,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { in.Run(ctx) })
	running.Go(func() { a.Run(ctx, nil, in) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		in.Close()
	})
}
