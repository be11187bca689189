import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, openAsBlob } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { table, unzipped } from "../../src/imprint/serve/static/zip.js";

const WRITE = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", int(sys.argv[2])) as z:
    z.writestr("chats/été.txt", "miaou" * 50)
    z.mkdir("empty")
    z.writestr("dog/1.txt", "woof")
    z.comment = b"a comment at the end"
`;

for (const [name, method] of [["stored", 0], ["deflated", 8]]) {
  test(`${name} files are read with their paths`, async () => {
    const path = join(mkdtempSync(join(tmpdir(), "zip")), "a.zip");
    execFileSync(process.env.PYTHON ?? "python3", ["-c", WRITE, path, String(method)]);
    const files = await unzipped(await openAsBlob(path));
    assert.deepEqual(files.map((one) => one.path), ["chats/été.txt", "dog/1.txt"]);
    assert.deepEqual(await Promise.all(files.map((one) => one.file.text())), ["miaou".repeat(50), "woof"]);
    assert.equal(files[0].file.name, "été.txt");
  });
}

test("what is not an archive is refused in one sentence", async () => {
  await assert.rejects(unzipped(new File(["not a zip at all, but long enough"], "a.zip")), /a.zip is not a zip archive\./);
});

test("a table has quotes, commas and line breaks in its fields", () => {
  const text = '\ufefftext,label\r\n"a ""quoted"", text\nin two lines",one\r\nplain,two\r\n';
  assert.deepEqual(table(text), [{ text: 'a "quoted", text\nin two lines', label: "one" }, { text: "plain", label: "two" }]);
});
