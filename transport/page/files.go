package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"agentsite/transport/web"
)

// document is the file of the document, which is at the path / and under its name beside the others.
const document = "index.html"

// policy lets the document load its own files, and call nobody but who served it. No text becomes script: the one policy
// of trusted types names the file worker.js. framed is that of a document that a page of the same origin shows as a
// part.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types agentsite-worker"

var framed = strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'", 1)

// contentTypes are those of the page's files, whatever the system says of their names.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".webmanifest": "application/manifest+json",
}

// file is a file of the page.
type file struct {
	content    []byte
	compressed func() []byte // by gzip, once somebody has asked for it
	header     map[string]string
}

// readFiles reads the files of a folder by their names.
func readFiles(from fs.FS, folder, policy string) map[string]file {
	all := make(map[string]file)
	names, err := fs.Glob(from, folder+"/*")
	for _, name := range names {
		var content []byte
		if content, err = fs.ReadFile(from, name); err != nil {
			break
		}
		sum := sha256.Sum256(content)
		all[path.Base(name)] = file{content, sync.OnceValue(func() []byte { return compress(content) }), map[string]string{
			"Content-Type":            contentTypes[path.Ext(name)],
			"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy": permissions, "Vary": "Accept-Encoding",
			"Cache-Control": "no-cache", "Etag": `W/"` + hex.EncodeToString(sum[:12]) + `"`,
		}}
	}
	if err != nil {
		panic(err) // the folder is in the program
	}
	return all
}

// fileRoutes returns the routes of files by their names.
func fileRoutes(files map[string]file) []web.Route {
	return []web.Route{
		{Pattern: "GET /{$}", Admission: web.Public, Serve: files[document].serve},
		{Pattern: "GET /page/{file}", Admission: web.Public, Serve: func(w http.ResponseWriter, r *http.Request, c web.Caller) {
			f, ok := files[r.PathValue("file")]
			if !ok {
				http.NotFound(w, r)
				return
			}
			f.serve(w, r, c)
		}},
	}
}

// permissions switch off what the page does not use.
const permissions = "camera=(), microphone=(), geolocation=(), usb=(), serial=(), payment=()"

func (f file) serve(w http.ResponseWriter, r *http.Request, _ web.Caller) {
	for name, value := range f.header {
		w.Header().Set(name, value)
	}
	content := f.content
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		content = f.compressed()
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(content) // a buffer takes everything
	w.Close()
	return b.Bytes()
}
