// Package page holds the site's page for browsers: its document, script and style.
//
// The sources are in src, the parts of others in vendor. What is served is in dist, which go generate
// makes of them, and which is committed so that a build needs no tool for scripts.
package page

import "embed"

//go:generate go test -run TestBundle -update

// dist has index.html, the scripts, page.css, the icons, and what makes the page an app: app.webmanifest, and
// worker.js for messages.
//
//go:embed dist
var dist embed.FS
