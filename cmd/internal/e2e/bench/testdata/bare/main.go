// bare is the smallest net/http program that answers a POST in JSON, the baseline of a site's
// start.
package main

import (
	"encoding/json"
	"net/http"
	"os"
)

func main() {
	http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		json.NewDecoder(r.Body).Decode(&in)
		json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": in["id"], "result": map[string]any{}})
	}))
}
