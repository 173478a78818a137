//go:build e2e

package page

import (
	"testing"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/evanw/esbuild/pkg/api"
)

// source returns a source of the page as a script, with what it exports under a name.
func source(t *testing.T, file, name string) string {
	t.Helper()
	r := api.Build(api.BuildOptions{EntryPoints: []string{"../../../../transport/page/src/" + file}, Bundle: true,
		Format: api.FormatIIFE, GlobalName: name, Target: api.ES2022, TsconfigRaw: "{}"})
	if len(r.Errors) > 0 || len(r.OutputFiles) != 1 {
		t.Fatal(r.Errors)
	}
	return string(r.OutputFiles[0].Contents)
}

// TestChainKept: of a journal that grows while it is shown, the page keeps the last entries, and what is older is asked
// for and hashed again. The chain still goes on from the entry that was noted.
func TestChainKept(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	const grow = `(async () => {
		const { Chain, many, most } = chains, base64 = b => btoa(String.fromCharCode(...b)), hashes = [new Uint8Array(32)];
		const entry = n => Uint8Array.of(0xa3, 1, 0x19, n >> 8, n & 255, 2, 0, 3, 0x65, ...new TextEncoder().encode("event"));
		const last = most + 2 * many, entries = [];
		for (let n = 1; n <= last; n++) {
			const e = entry(n);
			entries.push(base64(e));
			hashes.push(new Uint8Array(await crypto.subtle.digest("SHA-256", Uint8Array.of(...hashes[n - 1], ...e))));
		}
		const page = (from, to) => ({ first: 1, last, hash: base64(hashes[to]), chain: { after: base64(hashes[from]),
			entries: entries.slice(from, to) } });
		const chain = new Chain({ seq: 10, hash: base64(hashes[10]) });
		for (let to = many; to <= last; to += many) await chain.newest({ ...page(to - many, to), last: to });
		const { length } = chain.entries, seq = chain.before.seq, reached = chain.reached, more = chain.more;
		const wrong = await chain.older(page(seq - 2, seq - 1)).then(() => "", e => e.how);
		await chain.older(page(seq - 10, seq));
		return [length === most, seq === last - most, reached === 0, more, wrong, chain.entries[0].seq === seq - 9].join();
	})()`
	if got := run[string](b, source(t, "views/chain.ts", "chains")+grow); got != "true,true,true,true,place,true" {
		t.Errorf("it is so: %s", got)
	}
}
