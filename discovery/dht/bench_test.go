package dht

import (
	"fmt"
	"testing"
	"time"

	"agentsite/node/identity"
)

// BenchmarkLookup measures the lookup of the only site with a capability, in networks of different
// numbers of servers. The number of requests grows as the logarithm of that.
func BenchmarkLookup(b *testing.B) {
	for _, servers := range []int{25, 50, 100} { // 200 in one process take more than 20,000 files
		b.Run(fmt.Sprint(servers), func(b *testing.B) {
			n := newNet(b, servers)
			home := realm(b, "home")
			want := ids(n.site(home, "switch"))
			var requests uint64
			var took time.Duration
			looked := 0
			for b.Loop() {
				looks := n.open(identity.New(), Options{Realm: home})
				start := time.Now()
				if got := looks.lookup(b, "switch"); !alike(got, want) {
					b.Fatalf("%v is found", got)
				}
				took += time.Since(start)
				requests += looks.Requests()
				looked++
				looks.end()
			}
			b.ReportMetric(float64(requests)/float64(looked), "requests/lookup")
			b.ReportMetric(float64(took.Milliseconds())/float64(looked), "ms/lookup")
			b.ReportMetric(0, "ns/op")
		})
	}
}
