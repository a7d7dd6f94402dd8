/** The lines of a stream, each as {text} or, if it has more bytes than `most`, as {tooLong: true}. */
export async function* linesOf(stream, most) {
  let parts = [];
  let size = 0;
  const take = () => {
    const line = size > most ? {tooLong: true} : {text: Buffer.concat(parts).toString('utf8')};
    parts = [];
    size = 0;
    return line;
  };
  const add = (piece) => {
    size += piece.length;
    if (size > most) parts = [];
    else parts.push(piece);
  };
  for await (let chunk of stream) {
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10)) {
      add(chunk.subarray(0, end));
      yield take();
      chunk = chunk.subarray(end + 1);
    }
    if (chunk.length > 0) add(chunk);
  }
  if (size > 0) yield take();
}
