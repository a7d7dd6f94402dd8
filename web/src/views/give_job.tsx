import {useState} from 'preact/hooks';
import {api, type JobKind, type StoredFile} from '../api';
import {Dialog, Field, Problem, useAction, useLoad} from '../parts';

export type GivenKind = Extract<JobKind, 'probe' | 'measure' | 'adapt' | 'run'>;

const TITLES: Record<GivenKind, string> = {
  probe: 'Probe',
  measure: 'Measure a model',
  adapt: 'Adapt to a budget',
  run: 'Run within a budget',
};
const ABOUT: Record<GivenKind, string> = {
  probe: 'Finds out what the hardware is and how fast it computes and moves data.',
  measure: 'Times a model until its median is known within the target, or says why that cannot be.',
  adapt: 'Finds, on the device, the most accurate subnet of a bundle that keeps the budget.',
  run: 'Serves with the subnet that fits the moment, and switches when conditions change.',
};

const amount = (form: FormData, name: string) => Number(form.get(name));
const word = (form: FormData, name: string) => String(form.get(name) ?? '').trim();

function request(kind: GivenKind, form: FormData, file: StoredFile | undefined): Record<string, unknown> {
  switch (kind) {
    case 'probe':
      return {seconds: amount(form, 'seconds')};
    case 'measure':
      return {
        model: file?.hash,
        name: file?.name,
        ops: form.get('ops') === 'on',
        max_time_s: amount(form, 'max_time_s'),
        settings: {runtime: 'auto', threads: amount(form, 'threads'), precision: word(form, 'precision')},
        ...(word(form, 'as') ? {as: word(form, 'as')} : {}),
      };
    case 'adapt':
      return {bundle: file?.hash, data: word(form, 'data'), budget_ms: amount(form, 'budget_ms')};
    case 'run':
      return {bundle: file?.hash, data: word(form, 'data'), budget_ms: amount(form, 'budget_ms'), seconds: amount(form, 'seconds')};
  }
}

/** Asks for what a job needs, and gives it to the device. */
export function GiveJob({device, kind, onClose, onGiven}: {device: string; kind: GivenKind; onClose: () => void; onGiven: () => void}) {
  const {busy, error, act} = useAction();
  const needs = kind === 'measure' ? 'onnx' : kind === 'probe' ? undefined : 'bundle';
  const [file, setFile] = useState<StoredFile>();
  const submit = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    void act(async () => {
      await api.addJob({device, kind, request: request(kind, form, file)});
      onGiven();
    });
  };
  return (
    <Dialog title={`${TITLES[kind]} on ${device}`} onClose={onClose}>
      <form onSubmit={submit}>
        <p class="note">{ABOUT[kind]}</p>
        {needs && <FileChoice kind={needs} onChoose={setFile} />}
        {kind === 'measure' && <MeasureFields />}
        {kind === 'probe' && <Field label="At most, seconds"><input name="seconds" type="number" min="1" max="600" value="10" required /></Field>}
        {(kind === 'adapt' || kind === 'run') && <BudgetFields kind={kind} />}
        <Problem error={error} />
        <footer><button type="submit" class="primary" disabled={busy || (needs !== undefined && !file)}>{TITLES[kind].split(' ')[0]}</button></footer>
      </form>
    </Dialog>
  );
}

function MeasureFields() {
  return (
    <>
      <div class="pair">
        <Field label="Threads"><input name="threads" type="number" min="1" max="256" value="1" required /></Field>
        <Field label="Precision"><select name="precision"><option value="fp32">fp32</option><option value="int8">int8</option></select></Field>
      </div>
      <div class="pair">
        <Field label="At most, seconds"><input name="max_time_s" type="number" min="1" max="600" value="10" required /></Field>
        <Field label="Kept as" hint="Names these settings; empty: the device itself."><input name="as" maxLength={50} pattern="[A-Za-z0-9._\-]*" placeholder="4-threads" /></Field>
      </div>
      <label class="check"><input name="ops" type="checkbox" checked /> Times of operators too</label>
    </>
  );
}

function BudgetFields({kind}: {kind: 'adapt' | 'run'}) {
  return (
    <>
      <div class="pair">
        <Field label="Budget, ms"><input name="budget_ms" type="number" min="0.001" step="any" required placeholder="5" /></Field>
        {kind === 'run' && <Field label="For, seconds"><input name="seconds" type="number" min="1" max="86400" value="60" required /></Field>}
      </div>
      <Field label="Data" hint="A data set that the device has."><input name="data" required value="fashion-mnist" /></Field>
    </>
  );
}

/** One of the files that the server has, or a new one. */
function FileChoice({kind, onChoose}: {kind: 'onnx' | 'bundle'; onChoose: (file: StoredFile | undefined) => void}) {
  const loaded = useLoad(() => known(kind), [kind]);
  const [added, setAdded] = useState<StoredFile[]>([]);
  const [chosen, setChosen] = useState('');
  const {busy, error, act} = useAction();
  const files = [...added, ...(loaded.data ?? [])];
  const choose = (hash: string, from = files) => {
    setChosen(hash);
    onChoose(from.find((file) => file.hash === hash));
  };
  const upload = (event: Event) => {
    const file = (event.currentTarget as HTMLInputElement).files?.[0];
    if (!file) return;
    void act(async () => {
      const kept = await api.upload(file);
      setAdded([kept, ...added.filter((one) => one.hash !== kept.hash)]);
      choose(kept.hash, [kept]);
    });
  };
  const what = kind === 'onnx' ? 'Model' : 'Bundle';
  return (
    <>
      <Field label={what}>
        <select required value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="" disabled>{files.length > 0 ? `Choose one of ${files.length}` : 'None on the server yet'}</option>
          {files.map((file) => <option key={file.hash} value={file.hash}>{file.name}</option>)}
        </select>
      </Field>
      <Field label={`Or upload one (${kind === 'onnx' ? '.onnx, .tflite' : '.ffb'})`}>
        <input type="file" accept={kind === 'onnx' ? '.onnx,.tflite' : '.ffb'} disabled={busy} onChange={upload} />
      </Field>
      <Problem error={error ?? loaded.error} />
    </>
  );
}

async function known(kind: 'onnx' | 'bundle'): Promise<StoredFile[]> {
  return (await api.files(kind)).items;
}
