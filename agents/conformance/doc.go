// Package conformance has the tools, resources, prompts and tasks that the public MCP conformance
// suite calls, by the suite's names. A test adds them to a site and runs the suite against the site's
// servers. Only tests import it.
//
// Suite: https://github.com/modelcontextprotocol/conformance
package conformance
