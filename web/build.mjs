// Builds the page: node build.mjs FOLDER [--cc FILE.cc]
// FOLDER gets index.html and what it names; --cc also writes the C++ file that embeds all of it, compressed (include/fleetfit/server/web_files.h).
import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';
import {build} from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const digest = (data) => createHash('sha256').update(data).digest('hex').slice(0, 16);

/** The page's files by path; index.html names script and style by their content's hash. */
async function bundle() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: {page: 'src/main.tsx', style: 'src/style.css'},
    bundle: true,
    minify: true,
    write: false,
    outdir: 'out',
    format: 'esm',
    target: ['es2022'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    entryNames: 'assets/[name]-[hash]',
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const files = new Map();
  for (const file of result.outputFiles)
    files.set('/' + path.relative(path.join(here, 'out'), file.path).split(path.sep).join('/'), Buffer.from(file.contents));
  const named = (end) => [...files.keys()].find((name) => name.endsWith(end));
  const html = readFileSync(path.join(here, 'src/index.html'), 'utf8').replace('SCRIPT', named('.js')).replace('STYLE', named('.css'));
  files.set('/index.html', Buffer.from(html));
  files.set('/icon.svg', readFileSync(path.join(here, 'src/icon.svg')));
  return files;
}

function write(folder, files) {
  rmSync(folder, {recursive: true, force: true});
  for (const [name, data] of files) {
    const target = path.join(folder, name);
    mkdirSync(path.dirname(target), {recursive: true});
    writeFileSync(target, data);
  }
}

/** One blob that the assembler takes in as it is: quick to compile, however large the page. */
function embed(target, files) {
  const parts = [...files].map(([name, data]) => ({name, type: TYPES[path.extname(name)], etag: digest(data), data: gzipSync(data, {level: 9})}));
  const blob = target.replace(/\.cc$/, '.bin');
  const octets = Buffer.concat(parts.map((part) => part.data));
  mkdirSync(path.dirname(target), {recursive: true});
  writeFileSync(blob, octets);
  let offset = 0;
  const rows = parts.map(({name, type, etag, data}) => {
    const row = `      {.path = "${name}", .type = "${type}", .etag = "\\"${etag}\\"", .octets = {&fleetfit_web_octets[${offset}], ${data.length}}},`;
    offset += data.length;
    return row;
  });
  writeFileSync(target, `// Written by web/build.mjs. Content: ${digest(octets)}
#include "fleetfit/server/web_files.h"

#include <array>

asm(R"(
  .section .rodata
  .global fleetfit_web_octets
  .balign 16
fleetfit_web_octets:
  .incbin "${blob}"
  .byte 0
  .previous
)");

extern "C" const std::byte fleetfit_web_octets[];

namespace fleetfit::server {

std::span<const WebFile> web_files() {
  static const std::array<WebFile, ${parts.length}> kFiles = {{
${rows.join('\n')}
  }};
  return kFiles;
}

}  // namespace fleetfit::server
`);
}

const [folder = 'dist', flag, target] = process.argv.slice(2);
const files = await bundle();
write(path.resolve(folder), files);
if (flag === '--cc') embed(path.resolve(target), files);
for (const [name, data] of files) console.log(`${name}  ${data.length} octets, ${gzipSync(data, {level: 9}).length} compressed`);
