// The public TypeScript SDK, unchanged: node typescript.mjs URL TOKEN '[["tools/list"], ["tools/call", NAME, ARGUMENTS], …]'
// prints one line of JSON for each step: {"result": …} or {"error": {"code", "message", "data"}}.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.COTTER_TEST_TOOLS, "node", "clients", "package.json"));
const load = async (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const [url, token, steps] = process.argv.slice(2);
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const client = new Client({ name: "cotter-tests", version: "1" });
const failed = (error) => ({ error: { code: error.code ?? null, message: String(error.message), data: error.data ?? null } });

try {
  await client.connect(transport);
  for (const [method, name, args] of JSON.parse(steps)) {
    try {
      const result = method === "tools/list" ? await client.listTools() : await client.callTool({ name, arguments: args });
      console.log(JSON.stringify({ result }));
    } catch (error) {
      console.log(JSON.stringify(failed(error)));
    }
  }
  await transport.terminateSession();
  await client.close();
} catch (error) {
  console.log(JSON.stringify(failed(error)));
}
