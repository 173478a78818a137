// Package supervisor makes a site an app (add-on) of Home Assistant: it speaks the API of Home Assistant's
// Supervisor, announces the site's MCP server there, and admits what Home Assistant passes on of its users.
//
// A user of Home Assistant proves to the site only that Home Assistant let somebody in. All of them, and Home
// Assistant's own MCP client, are one principal, with the permission in the section homeassistant.
package supervisor
