// One request as it is given: node bare.mjs URL '[["name", "value"], …]' BODY [TOKEN]
// prints one line of JSON: {"status", "headers": [["name", "value"], …], "body"}.
const [url, headers, body, token] = process.argv.slice(2);
const head = JSON.parse(headers);
if (token) head.push(["authorization", `Bearer ${token}`]);
const answer = await fetch(url, { method: "POST", headers: head, body });
console.log(JSON.stringify({ status: answer.status, headers: [...answer.headers], body: await answer.text() }));
